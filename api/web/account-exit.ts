import { Readable } from 'node:stream';
import * as z from 'zod';
import { requestAccountDeletion } from '../../src/accounts/accounts/account-deletions.js';
import { exportAccount } from '../../src/account-lifecycle/account-export.js';
import { freshSession } from '../auth/fresh-session.js';
import { clearSessionCookie } from '../auth/session-cookie.js';
import { area } from '../http/area.js';
import { fileReply, reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const leaving = area({ tag: 'Accounts', auth: freshSession });

export function accountExitEndpoints({ database, secrets, settings }: WebDependencies) {
  const secure = settings.accounts.sessionCookieSecure;
  return [
    leaving({
      method: 'GET',
      path: '/api/settings/export',
      operationId: 'exportAccount',
      summary: 'Export all data of your account, without secrets, as a JSON file',
      limit: LIMITS.export,
      atOnce: { name: 'export', perOwner: 1 },
      responses: { 200: 'file' },
      async handler({ caller, tenant }) {
        const pieces = await exportAccount(tenant, caller.user.id, secrets);
        return fileReply(200, {
          content: Readable.from(pieces),
          contentType: 'application/json; charset=utf-8',
          name: 'account.json',
        });
      },
    }),
    leaving({
      method: 'DELETE',
      path: '/api/settings',
      operationId: 'deleteAccount',
      summary: "Delete your account and all its agents; `confirm` is the account's email address",
      body: z.object({ confirm: z.string().min(1).max(254) }),
      limit: LIMITS.signIn,
      responses: { 202: z.strictObject({ status: z.literal('deleting') }) },
      async handler({ body, caller, origin }) {
        await requestAccountDeletion(database, caller.user.id, body.confirm, origin);
        return reply(202, { status: 'deleting' }, { 'Set-Cookie': clearSessionCookie(secure) });
      },
    }),
  ];
}
