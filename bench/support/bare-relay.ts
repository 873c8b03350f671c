// The baseline for Icecast: one source and its listeners only by `node:http`. A separate program, which sends its
// port to its parent.
import http, { type ServerResponse } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';

const listeners = new Set<ServerResponse>();

const players = http.createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'audio/mpeg' });
  response.flushHeaders();
  listeners.add(response);
  response.on('close', () => listeners.delete(response));
});

// The protocol of sources is not one that `node:http` accepts, so that the first line decides.
const server = createServer((socket) => {
  socket.on('error', () => undefined);
  socket.once('data', (head) => {
    if (!head.toString('latin1').startsWith('SOURCE ')) {
      socket.unshift(head);
      players.emit('connection', socket);
      return;
    }
    socket.write('HTTP/1.0 200 OK\r\n\r\n');
    socket.on('data', (piece) => {
      for (const listener of listeners) listener.write(piece);
    });
  });
});
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port }); // TCP: never a string
});
process.on('disconnect', () => process.exit());
