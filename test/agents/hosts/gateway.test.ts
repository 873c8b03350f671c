// @module-tag attack
import { createServer, type RequestListener, type Server } from 'node:http';
import {
  createServer as createTcpServer,
  type AddressInfo,
  type Server as TcpServer,
  type Socket,
} from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { askGateway } from '../../../src/agents/hosts/gateway.js';
import { BadGatewayError } from '../../../src/lib/errors.js';

const servers: (Server | TcpServer)[] = [];
const sockets = new Set<Socket>();
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  for (const server of servers.splice(0)) server.close();
});

async function listen(server: Server | TcpServer): Promise<number> {
  servers.push(server);
  server.on('connection', (socket: Socket) => sockets.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port; // TCP: always an object
}

/** Starts a gateway as a tenant may write one. */
const gateway = (answer: RequestListener) => listen(createServer(answer));

/** The product's read rate, and the bytes that the kernel buffers before any read. */
const BYTES_PER_SECOND = 512 * 1024;
const IN_SOCKETS = 12 * 1024 * 1024;

const SSE = { 'content-type': 'text/event-stream; charset=utf-8' };
const piece = (content: string) =>
  `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;

async function ask(port: number, signal = new AbortController().signal): Promise<string> {
  let answer = '';
  const question = { message: 'hello', conversation: 'c' };
  for await (const each of askGateway({ port, token: 't' }, question, signal)) answer += each;
  return answer;
}

/** Sends as fast as the client reads, until it disconnects. */
const endlessly =
  (text: string, head: Record<string, string> = SSE): RequestListener =>
  (_request, response) => {
    response.writeHead(200, head);
    const block = text.repeat(Math.ceil(65_536 / text.length));
    const write = () => {
      while (!response.destroyed && response.write(block));
    };
    response.on('drain', write);
    write();
  };

test("an agent's answer arrives in pieces", async () => {
  const port = await gateway((_request, response) => {
    response.writeHead(200, SSE).write(': up\n\ndata: {"choices":[]}\n\n');
    const whole = Buffer.from(`${piece('ünï')}${piece('🚀')}data: [DONE]\n\n`);
    // Splits in the middle of a character.
    for (const byte of whole) response.write(Buffer.of(byte));
    response.end();
  });
  expect(await ask(port)).toBe('ünï🚀');
});

describe('hostile gateway', () => {
  test.each([301, 302, 303, 307, 308])(
    'does not follow a redirect of the gateway: %i',
    async (status) => {
      const visits: string[] = [];
      const elsewhere = await gateway((request, response) => {
        visits.push(`${request.method} ${request.headers.authorization}`);
        response.writeHead(200, SSE).end(`${piece('secret of another service')}data: [DONE]\n\n`);
      });
      const port = await gateway((_request, response) => {
        response.writeHead(status, { ...SSE, location: `http://127.0.0.1:${elsewhere}/` }).end();
      });
      await expect(ask(port)).rejects.toThrow(BadGatewayError);
      expect(visits).toEqual([]);
    },
  );

  test.each([
    ['a page', { 'content-type': 'text/html' }],
    ['JSON', { 'content-type': 'application/json' }],
    ['no content type', {}],
  ])('treats an answer with %s as a failed answer', async (_case, head) => {
    const port = await gateway((_request, response) => {
      response.writeHead(200, head).end(`${piece('x')}data: [DONE]\n\n`);
    });
    await expect(ask(port)).rejects.toThrow(BadGatewayError);
  });

  test('requests no compression and rejects a compressed answer', async () => {
    let accepted: string | undefined;
    const port = await gateway((request, response) => {
      accepted = request.headers['accept-encoding'];
      response.writeHead(200, { ...SSE, 'content-encoding': 'gzip' });
      response.end(gzipSync(`${piece('x')}data: [DONE]\n\n`));
    });
    await expect(ask(port)).rejects.toThrow(BadGatewayError);
    expect(accepted).toBe('identity');
  });

  test.each([
    ['empty events', 'data: {"choices":[]}\n\n'],
    ['text without an end', piece('x'.repeat(1_000))],
    ['an event without an end', 'data: x'],
  ])('cuts off a gateway that sends %s without end', { timeout: 60_000 }, async (_case, text) => {
    await expect(ask(await gateway(endlessly(text)))).rejects.toThrow(BadGatewayError);
  });

  test.each([
    ['blank lines', '\n'],
    ['comments', ': nothing\n'],
    ['names of events', 'event: x\nid: y\n'],
  ])('throttles a gateway that sends %s without end', async (_case, text) => {
    const leaving = new AbortController();
    const began = performance.now();
    setTimeout(() => leaving.abort(), 800);
    await expect(ask(await gateway(endlessly(text)), leaving.signal)).rejects.toThrow();
    const seconds = (performance.now() - began) / 1_000;
    const [socket] = sockets;
    const taken = (socket?.bytesWritten ?? Infinity) - (socket?.writableLength ?? 0);
    // One second's allowance at once, the rate since then, and both socket buffers; unthrottled, this
    // would be 32 MiB.
    expect(taken).toBeLessThan((seconds + 1) * BYTES_PER_SECOND + IN_SOCKETS);
  });

  test.each([
    ['header lines', 'HTTP/1.1 200 OK\r\n', 'x-a: b\r\n'],
    ['a header line', 'HTTP/1.1 200 OK\r\nx-a: ', 'b'],
    ['notices before its answer', '', 'HTTP/1.1 103 Early Hints\r\n\r\n'],
    [
      'chunk extensions',
      'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n1;',
      'x=y;',
    ],
  ])(
    'cuts off a gateway that sends %s without end',
    { timeout: 60_000 },
    async (_case, head, text) => {
      const port = await listen(
        createTcpServer((socket) => {
          socket.on('error', () => undefined); // expected when the client cuts off
          socket.write(head);
          const block = text.repeat(Math.ceil(65_536 / text.length));
          const write = () => {
            while (!socket.destroyed && socket.write(block));
          };
          socket.on('drain', write);
          write();
        }),
      );
      await expect(ask(port)).rejects.toThrow(BadGatewayError);
    },
  );

  test('rejects a gateway that switches protocols', async () => {
    const port = await listen(
      createTcpServer((socket) => {
        socket.on('error', () => undefined); // expected when the client cuts off
        socket.write(
          'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
        );
      }),
    );
    await expect(ask(port)).rejects.toThrow(BadGatewayError);
  });
});
