// A separate program: a gateway that answers every request with the same small page, and sends its port to its
// parent.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const PAGE = JSON.stringify({ ok: true, text: 'x'.repeat(1_000) });

const server = createServer((_, response) => {
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(PAGE),
  });
  response.end(PAGE);
});
server.listen(0, '127.0.0.1', () => {
  // A TCP address is never a string.
  const { port } = server.address() as AddressInfo;
  process.send?.({ port });
});
