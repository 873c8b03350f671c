// Runs in a closed network in which every address listens on the web's ports. Requests pages from the
// summarizer and prints its answers and the addresses that were connected to.
import { once } from 'node:events';
import http from 'node:http';
import { createServer } from 'node:net';
import { text } from 'node:stream/consumers';

const AT_ONCE = 8;

const { site, summarizer, urls } = JSON.parse(await text(process.stdin));
const reached = [];
const meet = (socket) => {
  reached.push(socket.localAddress.replace('::ffff:', ''));
  socket.on('error', () => undefined);
};
const inside = http.createServer((_request, response) =>
  response.writeHead(200, { 'content-type': 'text/html' }).end('<p>The secret of the inside.</p>'),
);
const redirecting = http.createServer(({ url }, response) =>
  response.writeHead(302, { location: new URL(url, 'http://a').searchParams.get('to') }).end(),
);
const listeners = [
  [inside.on('connection', meet), { port: 80, host: '::' }],
  [createServer(meet), { port: 443, host: '::' }],
  [redirecting, { port: site, host: '127.0.0.1' }],
];
for (const [server, place] of listeners) await once(server.listen(place), 'listening');

const answers = [];
const left = urls.entries();
const askOn = async () => {
  for (const [index, url] of left) {
    const path = ['summarize', 'extract', 'read'][index % 3];
    const response = await fetch(`${summarizer}/api/${path}`, {
      method: 'POST',
      // A new client address for each request, to stay below the rate limit per client.
      headers: {
        'content-type': 'application/json',
        'x-forwarded-for': `203.0.113.${index % 250}`,
      },
      body: JSON.stringify({ url }),
    });
    answers.push({ url, status: response.status, body: await response.json() });
  }
};
await Promise.all(Array.from({ length: AT_ONCE }, askOn));
process.stdout.write(JSON.stringify({ answers, reached }), () => process.exit());
