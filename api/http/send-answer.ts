import { Readable } from 'node:stream';
import type Koa from 'koa';
import type { Answer } from './answer.js';
import type { Server } from './server.js';

/** Sends an answer; a streamed body continues after this returns. */
export function sendAnswer(ctx: Koa.Context, answer: Answer, server: Server): void {
  const { status, headers, contentType, attachment, body } = answer;
  server.watch(ctx.res);
  const stream = body instanceof Readable ? body : undefined;
  const isHead = ctx.method === 'HEAD';
  if (isHead) stream?.destroy();
  // The body comes first, because setting it makes Koa derive a status and a type.
  ctx.body = (isHead && stream ? null : body) ?? null;
  ctx.status = status;
  if (attachment !== undefined) ctx.attachment(attachment);
  if (contentType !== undefined) ctx.set('Content-Type', contentType);
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) ctx.set(name, typeof value === 'string' ? value : [...value]);
  }
  if (server.closing) ctx.set('Connection', 'close');
  if (stream === undefined || isHead) return;
  server.track(stream);
  ctx.flushHeaders();
}
