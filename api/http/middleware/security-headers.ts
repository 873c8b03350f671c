import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import helmet from 'koa-helmet';
import Koa from 'koa';
import type { HttpSettings } from '../../../src/platform/http/settings.js';
import type { Middleware } from './context.js';

/** API answers are data: their content must not run, load or be framed. */
const API_POLICY = { defaultSrc: ["'none'"], frameAncestors: ["'none'"] };

type Headers = ReadonlyArray<readonly [string, string]>;

/** Computes helmet's headers once, against a response that is never sent: all requests get the same. */
async function helmetHeaders(includeSubDomains: boolean): Promise<Headers> {
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  const middleware = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: API_POLICY },
    strictTransportSecurity: { includeSubDomains },
  });
  await middleware(new Koa().createContext(request, response), () => Promise.resolve());
  const headers = Object.entries(response.getHeaders());
  return [
    ...headers.map(([name, value]) => [name, String(value)] as const),
    ['cache-control', 'no-store'],
  ];
}

const HEADERS = await helmetHeaders(false);
const HEADERS_FOR_SUBDOMAINS = await helmetHeaders(true);

/** Sets the headers of every answer, before headers of the answer itself can replace them. */
export function securityHeaders({
  hstsSubdomains,
}: Pick<HttpSettings, 'hstsSubdomains'>): Middleware {
  const headers = hstsSubdomains ? HEADERS_FOR_SUBDOMAINS : HEADERS;
  return (ctx, next) => {
    for (const [name, value] of headers) ctx.res.setHeader(name, value);
    return next();
  };
}
