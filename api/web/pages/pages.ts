import * as z from 'zod';
import { ADMIN_LINK_PATH } from '../../../src/accounts/accounts/admin-links.js';
import { listAgents } from '../../../src/agents/agents/agents.js';
import { listApiKeys } from '../../../src/accounts/accounts/api-keys.js';
import { listIdentities } from '../../../src/accounts/accounts/identities.js';
import { findSubscription } from '../../../src/accounts/accounts/subscriptions.js';
import { getProfile } from '../../../src/accounts/accounts/profile.js';
import { listSessions } from '../../../src/accounts/accounts/sessions.js';
import { listOwnKeys } from '../../../src/ai/own-keys/own-key-store.js';
import { costsByAgent } from '../../../src/ai/usage/cost-dashboard.js';
import { monthToDate } from '../../../src/ai/usage/period.js';
import { creditBalance } from '../../../src/money/ledger/ledger.js';
import type { TenantDatabase } from '../../../src/platform/database/database.js';
import { IDENTITY_KINDS } from '../../../src/types/sign-in-methods.js';
import { anonymous, type AnonymousCaller } from '../../auth/anonymous.js';
import { optionalSession } from '../../auth/optional-session.js';
import type { SessionCaller } from '../../auth/session.js';
import { area } from '../../http/area.js';
import type { Endpoint } from '../../http/endpoint.js';
import { indexReply, serviceIndex } from '../../http/service-index.js';
import { fileReply, redirect } from '../../http/reply.js';
import { LIMITS } from '../limits.js';
import { adminLinkPage } from './admin-link-page.js';
import type { BillingFacts } from './billing-section.js';
import { ICON, SCRIPT, STYLE, type Asset } from './assets.js';
import { dashboardPage } from './dashboard-page.js';
import { loginPage } from './login-page.js';
import { resetPasswordPage } from './reset-password-page.js';
import { signInMethods } from './sign-in-methods.js';
import { verifyEmailPage } from './verify-email-page.js';
import type { WebDependencies } from '../dependencies.js';

/** Maximum number of agents on the dashboard; the API lists the others. */
const MAX_AGENTS = 100;

const pages = area({ tag: 'Pages', auth: optionalSession });

export const WEB_TITLE = 'Agent Platform Service: web API';

/** A single word of a query; invalid values count as absent. */
const word = z.string().max(64).optional().catch(undefined);

/** Creates the pages for browsers, which are the targets of redirects and of links in mails. */
export function pageEndpoints(dependencies: WebDependencies): Endpoint[] {
  const { billing, http, mail: mailing } = dependencies.settings;
  const sellsCredits = billing.secretKey !== undefined;
  const mail = mailing.available;
  const isServed = http.agentsAt !== undefined;
  const methods = signInMethods(dependencies);
  return [
    pages({
      method: 'GET',
      path: '/',
      operationId: 'showStart',
      summary:
        'Redirect a browser to its account or to sign-in; name the documentation to programs',
      headers: z.object({ accept: z.string().optional() }),
      responses: { 200: serviceIndex, 302: 'redirect' },
      handler({ caller, headers: { accept = '' } }) {
        if (!accept.includes('text/html')) return indexReply(WEB_TITLE);
        return redirect(302, caller.kind === 'session' ? '/dashboard' : '/login');
      },
    }),
    pages({
      method: 'GET',
      path: '/login',
      operationId: 'showSignInPage',
      summary: 'Show the page for signing in or registering',
      query: z.object({
        error: word.describe('Code of a failed sign-in, to be explained'),
        done: word.describe('Name of the change to confirm'),
      }),
      responses: { 200: 'html' },
      handler({ caller, query }) {
        return loginPage({ ...query, email: emailOf(caller), mail, methods });
      },
    }),
    pages({
      method: 'GET',
      path: '/dashboard',
      operationId: 'showDashboard',
      summary: 'Show the page of your account',
      query: z.object({
        done: word.describe('Name of the change to confirm'),
        linked: z
          .enum(IDENTITY_KINDS)
          .optional()
          .catch(undefined)
          .describe('Kind of identity that was linked'),
      }),
      responses: { 200: 'html', 302: 'redirect' },
      async handler({ caller, query, tenant }) {
        if (caller.kind !== 'session') return redirect(302, '/login');
        const { sessionId: current, user } = caller;
        const { id, isAdmin } = user;
        const [profile, billing, identities, sessions, keys, agents, costs] = await Promise.all([
          getProfile(tenant, id),
          billingFacts(tenant, id),
          listIdentities(tenant, id),
          listSessions(tenant, id),
          listApiKeys(tenant, id),
          listAgents(tenant, { limit: MAX_AGENTS }),
          costsByAgent(tenant, monthToDate(new Date())),
        ]);
        const done = query.linked === undefined ? query.done : 'linked';
        const agentList = { agents: agents.items, costs, isServed };
        const lists = { identities, sessions, keys, agentList };
        const shown = { profile, sellsCredits, isAdmin, billing, mail, methods, current, done };
        return dashboardPage({ ...shown, ...lists });
      },
    }),
    pages({
      method: 'GET',
      path: '/verify-email',
      operationId: 'showVerifyEmailPage',
      summary: 'Show the page for confirming an address; this does not use up the token',
      query: z.object({ token: word.describe('Token of a mailed link') }),
      responses: { 200: 'html' },
      handler: ({ caller, query }) =>
        verifyEmailPage({ email: emailOf(caller), hasToken: query.token !== undefined }),
    }),
    pages({
      method: 'GET',
      path: ADMIN_LINK_PATH,
      operationId: 'showAdminPage',
      summary: 'Show the page for becoming an admin; this does not use up the token',
      query: z.object({ token: word.describe('Token of a mailed link') }),
      limit: LIMITS.signIn,
      responses: { 200: 'html' },
      handler: ({ caller, query }) =>
        adminLinkPage({ email: emailOf(caller), hasToken: query.token !== undefined }),
    }),
    pages({
      method: 'GET',
      path: '/reset-password',
      operationId: 'showResetPasswordPage',
      summary:
        'Show the page for requesting and setting a new password; this does not use up the token',
      auth: anonymous,
      query: z.object({ token: word.describe('Token of a mailed link') }),
      responses: { 200: 'html' },
      handler: ({ query }) => resetPasswordPage({ hasToken: query.token !== undefined, mail }),
    }),
    ...[STYLE, SCRIPT, ICON].map(assetEndpoint),
  ];
}

async function billingFacts(tenant: TenantDatabase, userId: string): Promise<BillingFacts> {
  const [subscription, storage, credits, ownKeys] = await Promise.all([
    findSubscription(tenant, userId, 'plan'),
    findSubscription(tenant, userId, 'storage'),
    creditBalance(tenant, userId),
    listOwnKeys(tenant, userId),
  ]);
  return { subscription, storage, credits, ownKeys };
}

const emailOf = (caller: SessionCaller | AnonymousCaller) =>
  caller.kind === 'session' ? caller.user.email : undefined;

function assetEndpoint({ content, contentType, operationId, path }: Asset): Endpoint {
  return pages({
    method: 'GET',
    path,
    operationId,
    summary: 'Get a file that the pages use',
    auth: anonymous,
    responses: { 200: 'file' },
    handler: () => fileReply(200, { content, contentType }, { 'Cache-Control': 'max-age=3600' }),
  });
}
