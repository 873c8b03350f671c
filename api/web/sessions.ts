import * as z from 'zod';
import { changePassword } from '../../src/accounts/accounts/change-password.js';
import { getProfile } from '../../src/accounts/accounts/profile.js';
import {
  endOtherSessions,
  endSession,
  listSessions,
  type ListedSession,
} from '../../src/accounts/accounts/sessions.js';
import { SIGN_IN_METHODS } from '../../src/types/sign-in-methods.js';
import { BadRequestError } from '../../src/lib/errors.js';
import { requireFresh } from '../auth/fresh-session.js';
import { serializeSessionCookie } from '../auth/session-cookie.js';
import { session } from '../auth/session.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { keepKeys } from '../views/keep-keys.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { signInHeaders, signInPlace } from './sign-in-place.js';

const PATH = '/api/auth/sessions';

const sessions = area({ tag: 'Accounts', auth: session });

const sessionItem = z
  .strictObject({
    id: z.string(),
    current: z.boolean(),
    method: z.enum(SIGN_IN_METHODS),
    createdAt: z.iso.datetime(),
    lastSeenAt: z.iso.datetime().describe('Accurate to the minute'),
    expiresAt: z.iso.datetime(),
    userAgent: z.string().nullable(),
    address: z.string().nullable(),
  })
  .meta({ id: 'Session' });

function presentSession(row: ListedSession, current: string) {
  return {
    id: row.id,
    current: row.id === current,
    method: row.method,
    createdAt: row.createdAt.toISOString(),
    lastSeenAt: row.lastSeenAt.toISOString(),
    expiresAt: row.expiresAt.toISOString(),
    userAgent: row.userAgent,
    address: row.address,
  };
}

export function sessionEndpoints({ settings, database }: WebDependencies) {
  const secure = settings.accounts.sessionCookieSecure;
  return [
    sessions({
      method: 'GET',
      path: PATH,
      operationId: 'listSessions',
      summary: 'List your sessions, most recently used first',
      responses: { 200: z.strictObject({ sessions: z.array(sessionItem) }) },
      async handler({ caller, tenant }) {
        const found = await listSessions(tenant, caller.user.id);
        return reply(200, { sessions: found.map((row) => presentSession(row, caller.sessionId)) });
      },
    }),
    sessions({
      method: 'DELETE',
      path: PATH,
      operationId: 'endOtherSessions',
      summary: 'End all of your other sessions',
      responses: { 200: z.strictObject({ success: z.literal(true), ended: z.number().int() }) },
      async handler({ caller, origin, tenant }) {
        const ended = await endOtherSessions(tenant, caller.user.id, caller.sessionId, origin);
        return reply(200, { success: true, ended });
      },
    }),
    sessions({
      method: 'DELETE',
      path: `${PATH}/:id`,
      operationId: 'endSession',
      summary: 'End one of your sessions',
      params: z.object({ id: z.string().max(64).describe('The session') }),
      responses: { 200: z.strictObject({ success: z.literal(true) }) },
      errors: [404],
      async handler({ caller, origin, params, tenant }) {
        await endSession(tenant, caller.user.id, params.id, origin);
        return reply(200, { success: true });
      },
    }),
    sessions({
      method: 'POST',
      path: '/api/settings/password',
      operationId: 'changePassword',
      summary: 'Change your password; ends all other sessions and all API keys',
      headers: signInHeaders,
      body: z.object({
        currentPassword: z
          .string()
          .min(1)
          .max(1024)
          .optional()
          .describe('Omit if no password is set yet; a recent sign-in is then required'),
        newPassword: z.string().min(8).max(1024),
        keepKeys,
      }),
      limit: LIMITS.signIn,
      responses: { 200: z.strictObject({ success: z.literal(true) }) },
      errors: [403],
      async handler(request) {
        const { body, caller, tenant } = request;
        if (body.currentPassword === undefined) {
          const { hasPassword } = await getProfile(tenant, caller.user.id);
          if (hasPassword) throw new BadRequestError('currentPassword is required');
          requireFresh(caller, { maxAgeMs: settings.accounts.stepUpMaxAgeMs });
        }
        const { token } = await changePassword(
          database,
          { ...body, user: caller.user, sessionId: caller.sessionId, place: signInPlace(request) },
          settings.accounts,
        );
        const headers = { 'Set-Cookie': serializeSessionCookie(token, secure) };
        return reply(200, { success: true }, headers);
      },
    }),
  ];
}
