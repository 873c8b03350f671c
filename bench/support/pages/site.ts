// A separate program: `node site.js <folder>`. Serves the files of a folder as pages for any query
// string, on all loopback addresses, and sends its port to its parent.
import { readdir, readFile } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';

const [folder = ''] = process.argv.slice(2);
const pages = new Map<string, Buffer>();
for (const name of await readdir(folder)) {
  pages.set(`/${name}`, await readFile(path.join(folder, name)));
}

const server = http.createServer(({ url = '' }, response) => {
  const page = pages.get(new URL(url, 'http://site').pathname);
  response.writeHead(page ? 200 : 404, { 'content-type': 'text/html' }).end(page);
});
// Keeps connections open for slow readers.
server.keepAliveTimeout = 600_000;
server.listen(0, '0.0.0.0', () => {
  const { port } = server.address() as AddressInfo; // a TCP listener: never a string
  process.send?.(port);
});
process.on('disconnect', () => process.exit());
