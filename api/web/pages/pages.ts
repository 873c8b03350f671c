import { z } from 'zod';
import { listApiKeys } from '../../../src/accounts/api-keys.js';
import { listSessions } from '../../../src/accounts/sessions.js';
import { anonymous } from '../../auth/anonymous.js';
import { optionalSession } from '../../auth/optional-session.js';
import { area } from '../../http/area.js';
import type { Endpoint } from '../../http/endpoint.js';
import { fileReply, redirect } from '../../http/reply.js';
import { SCRIPT, STYLE, type Asset } from './assets.js';
import { dashboardPage } from './dashboard-page.js';
import { loginPage } from './login-page.js';

const pages = area({ tag: 'Pages', auth: optionalSession });

/** One word of a query; whatever else comes is as if there were nothing. */
const word = z.string().max(64).optional().catch(undefined);

/** What people see in a browser: where redirects and the links in mails lead to. */
export function pageEndpoints(): Endpoint[] {
  return [
    pages({
      method: 'GET',
      path: '/login',
      summary: 'The page to sign in or register on',
      query: z.object({ error: word, done: word }),
      responses: { 200: 'html' },
      handler({ caller, query }) {
        const email = caller.kind === 'session' ? caller.user.email : undefined;
        return loginPage({ ...query, email });
      },
    }),
    pages({
      method: 'GET',
      path: '/dashboard',
      summary: 'The page of your account',
      query: z.object({ done: word }),
      responses: { 200: 'html', 302: 'redirect' },
      async handler({ caller, query, tenant }) {
        if (caller.kind !== 'session') return redirect(302, '/login');
        const { sessionId: current, user } = caller;
        const [sessions, keys] = await Promise.all([
          listSessions(tenant, user.id),
          listApiKeys(tenant, user.id),
        ]);
        return dashboardPage({ user, sessions, current, keys, done: query.done });
      },
    }),
    ...[STYLE, SCRIPT].map(assetEndpoint),
  ];
}

function assetEndpoint({ content, contentType, path }: Asset): Endpoint {
  return pages({
    method: 'GET',
    path,
    summary: 'Part of the pages',
    auth: anonymous,
    responses: { 200: 'file' },
    handler: () => fileReply(200, { content, contentType }, { 'Cache-Control': 'max-age=3600' }),
  });
}
