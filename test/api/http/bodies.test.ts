import { createHmac } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { anonymous } from '../../../api/auth/anonymous.js';
import { configurableAuthentication } from '../../../api/auth/authentication.js';
import { passedOnBody, rawBody, textBody } from '../../../api/http/body-format.js';
import { endpoint } from '../../../api/http/endpoint.js';
import { multipartBody } from '../../../api/http/multipart.js';
import { fileReply, htmlReply, redirect, reply } from '../../../api/http/reply.js';
import { resolved } from '../../fuzz/document.js';
import { serve, type TestListener } from './support.js';

const SECRET = 'secret-of-this-test';
const sign = (body: string | Buffer) => createHmac('sha256', SECRET).update(body).digest('hex');

/** Authentication by the signature of the body, as for a provider's webhook. */
const signedWebhook = configurableAuthentication<string, { readonly kind: 'provider' }>({
  name: 'signed-webhook',
  schemes: [{ signature: { type: 'apiKey', in: 'header', name: 'x-signature' } }],
  errors: [401],
  proof: 'body',
  prepare: (secret) => {
    return ({ request, body }) => {
      const signature = createHmac('sha256', secret)
        .update(body ?? '')
        .digest('hex');
      if (request.headers['x-signature'] !== signature) return undefined;
      return { caller: { kind: 'provider' }, tenant: 'platform', scope: 'provider' };
    };
  },
});

let handled = 0;
const summary = 'A body';
const tag = 'bodies';

const webhook = endpoint({
  method: 'POST',
  path: '/webhook',
  summary,
  tag,
  auth: signedWebhook,
  body: rawBody('application/json'),
  responses: { 200: z.strictObject({ from: z.string(), hex: z.string() }) },
  handler({ body, caller }) {
    handled++;
    return reply(200, { from: caller.kind, hex: body.toString('hex') });
  },
});

const token = endpoint({
  method: 'POST',
  path: '/token',
  summary,
  tag,
  auth: anonymous,
  body: textBody(z.string().min(3).max(20), 'application/jwt', 'text/plain'),
  responses: { 200: z.strictObject({ token: z.string() }) },
  handler: ({ body }) => reply(200, { token: body }),
});

const form = endpoint({
  method: 'POST',
  path: '/form',
  summary,
  tag,
  auth: anonymous,
  body: multipartBody({
    fields: z.object({ title: z.string().min(1), note: z.string().optional() }),
    files: { image: ['image/png'] },
    maxBytes: 2 * 1024 * 1024,
    maxParts: 3,
  }),
  responses: {
    200: z.strictObject({ title: z.string(), name: z.string(), bytes: z.number() }),
  },
  handler({ body: { fields, files } }) {
    const { name, bytes } = files.image;
    return reply(200, { title: fields.title, name, bytes: bytes.length });
  },
});

const passedOn = endpoint({
  method: 'POST',
  path: '/passed-on',
  summary,
  tag,
  auth: anonymous,
  body: passedOnBody(z.looseObject({ text: z.string() })),
  responses: { 200: z.looseObject({}) },
  handler: ({ body }) => reply(200, body),
});

const answers = endpoint({
  method: 'GET',
  path: '/answers/:kind',
  summary: 'Answers of all kinds',
  tag,
  auth: anonymous,
  params: z.object({ kind: z.enum(['file', 'bytes', 'html', 'redirect', 'undeclared']) }),
  responses: { 200: 'file', 203: 'html', 303: 'redirect' },
  handler({ params }) {
    const contentType = 'text/csv';
    switch (params.kind) {
      case 'file': {
        const content = Readable.from([Buffer.from('a,'), Buffer.from('b')]);
        return fileReply(200, { content, contentType, name: '表 1.csv' });
      }
      case 'bytes':
        return fileReply(200, { content: Buffer.from('a,b'), contentType });
      case 'html':
        return htmlReply(203, '<p>hello</p>');
      case 'redirect':
        return redirect(303, '/login?error=IdpNoEmail', { 'Set-Cookie': 'a=b' });
      case 'undeclared':
        // An undeclared reply, possible in a handler without types.
        return { ...htmlReply(203, ''), status: 200 } as never;
    }
  },
});

let listener: TestListener;
beforeAll(async () => {
  listener = await serve([webhook, token, form, passedOn, answers], {
    authenticate: [signedWebhook.with(SECRET)],
  });
});
afterAll(() => listener?.close());

const post = async (path: string, type: string, body: RequestInit['body'], headers = {}) => {
  const init = { method: 'POST', body, headers: { 'content-type': type, ...headers } };
  const response = await listener.call(path, init);
  return { status: response.status, body: await response.json() };
};

describe('body that is passed on', () => {
  const passOn = (json: string) => post('/passed-on', 'application/json', json);

  test('keeps NUL and whole pairs, and replaces half pairs, also in names', async () => {
    const json = String.raw`{"text":"a\u0000b\ud800c\ud83d\ude00\udc00","\ud800":"\\ud800\uD83D"}`;
    expect(await passOn(json)).toEqual({
      status: 200,
      body: { text: 'a\0b\ufffdc😀\ufffd', '\ufffd': '\\ud800\ufffd' },
    });
  });

  test.each([
    ['{"text":5}', 'text must be text'],
    ['{"text":', 'Request body is not valid JSON'],
    [`{"text":"","deep":${'['.repeat(200)}${']'.repeat(200)}}`, 'body is nested too deeply'],
  ])('rejects %s', async (json, error) => {
    expect(await passOn(json)).toEqual({ status: 400, body: { error } });
  });
});

describe('signed body', () => {
  const body = '{ "a":\t1 }';

  test('passes a signed body to the handler byte for byte', async () => {
    const sent = await post('/webhook', 'application/json', body, { 'x-signature': sign(body) });
    const hex = Buffer.from(body).toString('hex');
    expect(sent).toEqual({ status: 200, body: { from: 'provider', hex } });
  });

  test.each([[{}], [{ 'x-signature': sign('{"a":1}') }]])(
    'rejects a body with 401 for the signature headers %j',
    async (headers) => {
      handled = 0;
      const sent = await post('/webhook', 'application/json', body, headers);
      expect(sent).toEqual({ status: 401, body: { error: 'Unauthorized' } });
      expect(handled).toBe(0);
    },
  );

  test('checks content type and size of a signed body too', async () => {
    expect((await post('/webhook', 'text/plain', body)).status).toBe(415);
    const big = 'x'.repeat(1024 * 1024 + 1);
    const headers = { 'x-signature': sign(big) };
    expect((await post('/webhook', 'application/json', big, headers)).status).toBe(413);
  });
});

describe('text body', () => {
  test.each(['application/jwt', 'text/plain; charset=utf-8'])(
    'accepts a text body as %s',
    async (type) => {
      expect(await post('/token', type, 'a.b.c')).toEqual({
        status: 200,
        body: { token: 'a.b.c' },
      });
    },
  );

  test.each([
    ['text/plain', 'ab', 400, 'body must be at least 3 characters'],
    ['text/plain', '', 400, 'body is required'],
    ['text/plain', 'a\0bc', 400, 'body contains a character that cannot be stored'],
    ['text/plain', Buffer.from([0xff, 0xfe, 0xfd]), 400, 'Request body is not valid UTF-8'],
    ['application/json', '"abc"', 415, 'Content-Type must be application/jwt or text/plain'],
  ])('answers a text body of %s %j with %i %s', async (type, body, status, error) => {
    expect(await post('/token', type, body)).toEqual({ status, body: { error } });
  });
});

describe('multipart form', () => {
  const png = (bytes = 3) => new File(['x'.repeat(bytes)], 'a/b.png', { type: 'image/png' });
  const formOf = (...parts: [string, string | File][]) => {
    const sent = new FormData();
    for (const [name, value] of parts) sent.append(name, value);
    return sent;
  };
  const send = async (body: RequestInit['body'], headers = {}) => {
    const response = await listener.call('/form', { method: 'POST', body, headers });
    return { status: response.status, body: await response.json() };
  };

  test('passes the fields and files of a form to the handler', async () => {
    const sent = await send(formOf(['title', 'A picture'], ['image', png(1_500_000)]));
    const body = { title: 'A picture', name: 'b.png', bytes: 1_500_000 };
    expect(sent).toEqual({ status: 200, body });
  });

  test.each([
    [formOf(['image', png()]), 400, 'title is required'],
    [formOf(['title', 'a'], ['title', 'b'], ['image', png()]), 400, 'title must be text'],
    [
      formOf(['title', 'a\0'], ['image', png()]),
      400,
      'body contains a character that cannot be stored',
    ],
    [formOf(['title', 'a']), 400, 'image is required'],
    [formOf(['image', png()], ['image', png()]), 400, 'image must be sent only once'],
    [formOf(['image', png()], ['constructor', png()]), 400, 'constructor is not a known field'],
    [formOf(['title', 'a'], ['image', new File(['x'], 'a')]), 415, 'image must be image/png'],
    [
      formOf(['title', 'a'], ['note', 'b'], ['more', 'c'], ['image', png()]),
      413,
      'Request body has too many parts (at most 3)',
    ],
    [formOf(['image', png(2 * 1024 * 1024)]), 413, 'Request body is too large (at most 2 MB)'],
  ])('rejects invalid form %#', async (form, status, error) => {
    expect(await send(form)).toEqual({ status, body: { error } });
  });

  test.each([
    ['multipart/form-data', 'x', 400],
    ['multipart/form-data; boundary=b', '--b\r\nContent-Disposition: form-data; name="title"', 400],
    ['multipart/form-data; boundary=b', '--b\r\nnothing', 400],
    ['multipart/form-data; boundary=b', '', 400],
    ['application/json', '{}', 415],
  ])('rejects a malformed form: %s %j', async (type, body, status) => {
    expect((await send(body, { 'content-type': type })).status).toBe(status);
  });
});

describe('response kinds', () => {
  test('sends a file as a named download', async () => {
    const answer = await listener.call('/answers/file');
    expect([answer.status, await answer.text()]).toEqual([200, 'a,b']);
    expect(answer.headers.get('content-type')).toBe('text/csv');
    const disposition = `attachment; filename="? 1.csv"; filename*=UTF-8''%E8%A1%A8%201.csv`;
    expect(answer.headers.get('content-disposition')).toBe(disposition);
  });

  test('sends bytes for inline display', async () => {
    const answer = await listener.call('/answers/bytes');
    expect([answer.headers.get('content-length'), await answer.text()]).toEqual(['3', 'a,b']);
    expect(answer.headers.get('content-disposition')).toBeNull();
    const head = await listener.call('/answers/bytes', { method: 'HEAD' });
    expect([head.status, head.headers.get('content-type')]).toEqual([200, 'text/csv']);
  });

  test('sends an HTML page that may run no scripts', async () => {
    const answer = await listener.call('/answers/html');
    expect([answer.status, await answer.text()]).toEqual([203, '<p>hello</p>']);
    expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
  });

  test('redirects with headers', async () => {
    const answer = await listener.call('/answers/redirect', { redirect: 'manual' });
    expect([answer.status, await answer.text()]).toEqual([303, '']);
    expect(answer.headers.get('location')).toBe('/login?error=IdpNoEmail');
    expect(answer.headers.get('set-cookie')).toBe('a=b');
  });

  test('answers 500 when a handler returns an undeclared kind of response', async () => {
    expect((await listener.call('/answers/undeclared')).status).toBe(500);
    expect(JSON.stringify(listener.log)).toContain('status 200 as html');
  });
});

test('declares the content types of bodies and responses in the OpenAPI document', async () => {
  const { components, paths } = resolved(
    await (await listener.call('/openapi.json')).json(),
  ) as Document;
  const typesOf = (path: string) => Object.keys(paths[path]?.post?.requestBody.content ?? {});
  expect(typesOf('/webhook')).toEqual(['application/json']);
  expect(typesOf('/token')).toEqual(['application/jwt', 'text/plain']);
  expect(paths['/form']?.post?.requestBody.content).toMatchObject({
    'multipart/form-data': {
      schema: { required: ['title', 'image'], properties: { image: { format: 'binary' } } },
    },
  });
  expect(Object.keys(paths['/webhook']?.post?.responses ?? {})).toEqual(
    [200, 400, 401, 413, 415, 429, 503, 'default'].map(String),
  );
  expect(paths['/answers/{kind}']?.get?.responses).toMatchObject({
    200: { content: { '*/*': { schema: { format: 'binary' } } } },
    203: { content: { 'text/html': { schema: { type: 'string' } } } },
    303: { headers: { Location: { schema: { type: 'string' } } } },
  });
  expect(components.securitySchemes).toEqual(signedWebhook.schemes[0]);
});

interface Operation {
  readonly requestBody: { readonly content: Record<string, unknown> };
  readonly responses: Record<string, unknown>;
}

interface Document {
  readonly components: { readonly securitySchemes: unknown };
  readonly paths: Record<string, Partial<Record<'get' | 'post', Operation>>>;
}
