import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import helmet from 'koa-helmet';
import Koa from 'koa';
import type { Middleware } from './context.js';

/** API answers are data: their content must not run, load or be framed. */
const API_POLICY = { defaultSrc: ["'none'"], frameAncestors: ["'none'"] };

/** Computes helmet's headers once, against a response that is never sent: all requests get the same. */
async function helmetHeaders(): Promise<ReadonlyArray<readonly [string, string]>> {
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  const middleware = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: API_POLICY },
  });
  await middleware(new Koa().createContext(request, response), () => Promise.resolve());
  const headers = Object.entries(response.getHeaders());
  return [
    ...headers.map(([name, value]) => [name, String(value)] as const),
    ['cache-control', 'no-store'],
  ];
}

const SECURITY_HEADERS = await helmetHeaders();

/** Sets the headers of every answer, before headers of the answer itself can replace them. */
export function securityHeaders(): Middleware {
  return (ctx, next) => {
    for (const [name, value] of SECURITY_HEADERS) ctx.res.setHeader(name, value);
    return next();
  };
}
