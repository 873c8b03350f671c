// The provider behind every gateway: serves OpenAI's chat completions on loopback without delay. A
// separate program: `node provider.js`, which sends its port to its parent.
import http from 'node:http';
import type { AddressInfo } from 'node:net';

const ID = 'chatcmpl-BenchBenchBenchBenchBench1';
const CREATED = 1_750_000_000;
const FINGERPRINT = 'fp_44709d6fcb';
const WORDS = ['Koa', ' is', ' a', ' small', ' web', ' framework', ' for', ' Node', '.js', '.'];

/** Usage reported by every answer. */
const USAGE = {
  prompt_tokens: 19,
  completion_tokens: WORDS.length,
  total_tokens: 19 + WORDS.length,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
};

interface Asked {
  readonly model: string;
  readonly stream?: boolean;
}

const server = http.createServer({ keepAliveTimeout: 120_000 }, (request, response) => {
  let text = '';
  request.setEncoding('utf8');
  request.on('data', (piece: string) => (text += piece));
  request.on('end', () => {
    // Some gateways probe the provider with other methods.
    if (request.method !== 'POST') return void response.writeHead(404).end();
    const { model, stream = false } = JSON.parse(text) as Asked; // the request that a gateway sent
    const body = stream ? events(model) : JSON.stringify(answer(model));
    response.writeHead(200, {
      'content-type': stream ? 'text/event-stream; charset=utf-8' : 'application/json',
      // A stream is sent in chunks, as by a real provider.
      ...(!stream && { 'content-length': Buffer.byteLength(body) }),
      'x-request-id': 'req_bench',
    });
    response.end(body);
  });
});
server.listen(0, '127.0.0.1', () => {
  process.send?.({ port: (server.address() as AddressInfo).port }); // TCP: never a string
});
process.on('disconnect', () => process.exit());

function answer(model: string) {
  return {
    id: ID,
    object: 'chat.completion',
    created: CREATED,
    model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: WORDS.join(''), refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: USAGE,
    system_fingerprint: FINGERPRINT,
  };
}

function events(model: string): string {
  const said = [{ role: 'assistant', content: '' }, ...WORDS.map((content) => ({ content }))];
  const chunks = [
    ...said.map((delta) => chunk(model, [{ index: 0, delta, finish_reason: null }])),
    chunk(model, [{ index: 0, delta: {}, finish_reason: 'stop' }]),
    { ...chunk(model, []), usage: USAGE },
  ];
  const data = [...chunks.map((each) => JSON.stringify(each)), '[DONE]'];
  return data.map((each) => `data: ${each}\n\n`).join('');
}

function chunk(model: string, choices: readonly unknown[]) {
  return {
    id: ID,
    object: 'chat.completion.chunk',
    created: CREATED,
    model,
    system_fingerprint: FINGERPRINT,
    choices,
  };
}
