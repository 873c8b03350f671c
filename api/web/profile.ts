import * as z from 'zod';
import {
  changeProfile,
  getProfile,
  type Profile,
  type ProfileChange,
} from '../../src/accounts/accounts/profile.js';
import { formattedAmount } from '../../src/types/money.js';
import { PLANS } from '../../src/types/plans.js';
import { MAX_NAME_LENGTH } from '../../src/accounts/accounts/register.js';
import type { RequestOrigin } from '../../src/platform/audit/audit.js';
import { visibleName } from '../../src/lib/visible-name.js';
import { requireFresh } from '../auth/fresh-session.js';
import { session, type SessionCaller } from '../auth/session.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { requireMail } from './mailed-links.js';

const PATH = '/api/settings';

const profile = area({ tag: 'Accounts', auth: session });

const profileItem = z
  .strictObject({
    user: z.strictObject({
      id: z.string(),
      name: z.string(),
      email: z.string(),
      pendingEmail: z.string().nullable().describe('The new value of `email`, once confirmed'),
      isAdmin: z.boolean(),
      emailVerified: z.boolean(),
      hasPassword: z.boolean(),
      plan: z.enum(PLANS).nullable(),
      referralCode: z.string().nullable(),
      credits: formattedAmount.describe('Bought and granted credits in US dollars'),
      createdAt: z.iso.datetime(),
    }),
  })
  .meta({ id: 'Profile' });

const change = z
  .object({
    name: visibleName(MAX_NAME_LENGTH).optional(),
    email: z.string().max(254).optional().describe('Changing it requires a recent sign-in'),
  })
  .refine(({ email, name }) => email !== undefined || name !== undefined, {
    error: 'name or email is required',
  });

const present = ({ createdAt, ...user }: Profile, { plan, user: { isAdmin } }: SessionCaller) => ({
  user: { ...user, isAdmin, plan: plan ?? null, createdAt: createdAt.toISOString() },
});

/** Creates the `/api/settings` endpoints (spec 4.1) for a user's own profile. */
export function profileEndpoints({ database, settings }: WebDependencies) {
  const changed = async (caller: SessionCaller, body: ProfileChange, origin: RequestOrigin) => {
    if (body.email !== undefined) {
      requireFresh(caller, { maxAgeMs: settings.accounts.stepUpMaxAgeMs });
      requireMail(settings.mail);
    }
    await changeProfile(database, caller.user.id, body, origin);
    return present(await getProfile(database.asUser(caller.user.id), caller.user.id), caller);
  };
  return [
    profile({
      method: 'GET',
      path: PATH,
      operationId: 'getProfile',
      summary: 'Get your profile',
      responses: { 200: profileItem },
      async handler({ caller, tenant }) {
        return reply(200, present(await getProfile(tenant, caller.user.id), caller));
      },
    }),
    ...(['POST', 'PATCH'] as const).map((method) =>
      profile({
        method,
        path: PATH,
        operationId: method === 'PATCH' ? 'changeProfile' : 'postProfile',
        summary: 'Change your name, or your address, which changes once you confirm it by mail',
        body: change,
        limit: LIMITS.settings,
        limitOfCaller: LIMITS.settingsOfUser,
        responses: { 200: profileItem },
        errors: [503],
        async handler({ body, caller, origin }) {
          return reply(200, await changed(caller, body, origin));
        },
      }),
    ),
  ];
}
