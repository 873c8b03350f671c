import * as z from 'zod';
import { makeInvites, takeInvite, type UsedInvite } from '../../src/accounts/invites/invites.js';
import { StillRunningError } from '../../src/platform/idempotency/idempotency-store.js';
import { anonymous } from '../auth/anonymous.js';
import { internalKey } from '../auth/internal-key.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import type { BackendDependencies } from './dependencies.js';
import { INVITE_LIMITS } from './limits.js';
import { requestedBy } from './requested-by.js';

const invites = area({ tag: 'Installations', auth: internalKey });

const code = z.string().meta({ examples: ['7G2K-9QXM-04TA-RW5Z'] });

const NO_CODE = { valid: false, error: 'The code is unknown, used up or expired' } as const;

/** Creates `POST /api/invite/generate|validate` (spec 4.15). */
export function inviteEndpoints({ database }: Pick<BackendDependencies, 'database'>) {
  return [
    invites({
      method: 'POST',
      path: '/api/invite/generate',
      operationId: 'generateInvites',
      summary: 'Make invite codes, which cannot be read again',
      idempotent: true,
      body: z
        .strictObject({
          count: z.int().min(1).max(100).default(1),
          uses: z.int().min(1).max(1_000).default(1).describe('Uses of each code'),
          expiresInHours: z.int().min(1).max(8_760).default(720),
        })
        .prefault({}),
      responses: {
        201: z.strictObject({
          code: code.describe('The first code'),
          codes: z.array(code),
          uses: z.int(),
          expiresAt: z.iso.datetime(),
        }),
      },
      async handler(request) {
        const { body } = request;
        const { codes, expiresAt } = await makeInvites(database, body, requestedBy(request));
        const [first = ''] = codes;
        return reply(201, {
          code: first,
          codes,
          uses: body.uses,
          expiresAt: expiresAt.toISOString(),
        });
      },
    }),
    invites({
      method: 'POST',
      path: '/api/invite/validate',
      operationId: 'validateInvite',
      summary: 'Redeem one use of an invite code',
      auth: anonymous,
      idempotent: true,
      limit: INVITE_LIMITS,
      body: z.strictObject({
        code: z.string().min(1).max(100).describe('Letter case, hyphens and blanks do not count'),
      }),
      responses: {
        200: z.strictObject({
          valid: z.literal(true),
          remaining: z.int().describe('Uses that are left'),
          expiresAt: z.iso.datetime(),
        }),
        404: z.strictObject({ valid: z.literal(false), error: z.string() }),
      },
      async handler({ body, keepAnswer, origin }) {
        const used = await takeInvite(database, body.code, origin, async (db, used) => {
          const isKept = keepAnswer === undefined || (await keepAnswer(db, valid(used)));
          if (!isKept) throw new StillRunningError();
        });
        return used ? valid(used) : reply(404, NO_CODE);
      },
    }),
  ];
}

const valid = ({ expiresAt, remaining }: UsedInvite) =>
  reply(200, { valid: true, remaining, expiresAt: expiresAt.toISOString() });
