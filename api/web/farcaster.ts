import * as z from 'zod';
import { UnauthorizedError } from '../../src/lib/errors.js';
import type { FarcasterIdentity } from '../../src/accounts/sign-in/farcaster/quick-auth.js';
import type { FarcasterToken } from '../../src/accounts/sign-in/farcaster/farcaster-tokens.js';
import { checkProvenAddress } from '../../src/accounts/token-gating/check-gate.js';
import { requestOwner } from '../../src/platform/http/client-networks.js';
import { anonymous } from '../auth/anonymous.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { gateAnswer, presentGate } from './token-gating.js';

const farcaster = area({ tag: 'Accounts', auth: anonymous });

export const INVALID_FARCASTER_TOKEN = 'Invalid Farcaster token';

const BODY = {
  token: z.string().min(1).max(8_192),
  gate: z
    .boolean()
    .optional()
    .describe("True to check that the wallet holds the platform's token as well"),
};

const proven = z
  .strictObject({
    success: z.literal(true),
    fid: z.number().int(),
    token: z.string(),
    expiresAt: z.iso.datetime(),
    tokenGating: gateAnswer
      .nullable()
      .optional()
      .describe(
        'With `gate`: result for the wallet in the proof; null if the proof names no wallet',
      ),
  })
  .meta({ id: 'FarcasterProof' });

/** Creates the endpoint that describes another one, for people who open its URL in a browser. */
function described(path: string, operationId: string, description: string, token: string) {
  const body = { token, gate: 'true, optional: looks for the platform token as well' };
  return farcaster({
    method: 'GET',
    path,
    operationId,
    summary: `Describe \`POST ${path}\``,
    responses: {
      200: z.strictObject({
        endpoint: z.string(),
        method: z.literal('POST'),
        description: z.string(),
        body: z.strictObject({ token: z.string(), gate: z.string() }),
      }),
    },
    handler: () => reply(200, { endpoint: path, method: 'POST', description, body }),
  });
}

const VERIFY = '/api/auth/farcaster/verify';
const REFRESH = '/api/auth/farcaster/refresh';

/** Creates the endpoints that prove a Farcaster account without signing in (spec 4.1). */
export function farcasterEndpoints({
  farcaster: service,
  tokenGate,
}: Pick<WebDependencies, 'farcaster' | 'tokenGate'>) {
  const common = {
    method: 'POST',
    limit: LIMITS.farcaster,
    body: z.object(BODY),
    responses: { 200: proven },
    errors: [401, 503],
  } as const;
  return [
    described(
      VERIFY,
      'describeFarcasterVerify',
      'Proves a Farcaster account.',
      'a JWT of Quick Auth',
    ),
    farcaster({
      ...common,
      path: VERIFY,
      operationId: 'verifyFarcaster',
      summary: 'Prove a Farcaster account, without signing in',
      async handler({ body, clientAddress }) {
        const identity = await service.quickAuth.verify(body.token);
        if (!identity) throw new UnauthorizedError(INVALID_FARCASTER_TOKEN);
        const gating = await gatingOf(identity, clientAddress, body.gate);
        return answer(identity, await service.tokens.issue(identity), gating);
      },
    }),
    described(
      REFRESH,
      'describeFarcasterRefresh',
      'Replaces a token of verify by a new one.',
      'the token of the last answer',
    ),
    farcaster({
      ...common,
      path: REFRESH,
      operationId: 'refreshFarcasterToken',
      summary:
        'Replace a token by a new one, which invalidates the old one; possible up to 30 days after the proof',
      async handler({ body, clientAddress }) {
        const identity = await service.tokens.find(body.token);
        // The step that may fail comes first, so that the token stays valid on failure.
        const gating = identity && (await gatingOf(identity, clientAddress, body.gate));
        const made = identity && (await service.tokens.refresh(body.token));
        if (!made) throw new UnauthorizedError(INVALID_FARCASTER_TOKEN);
        return answer(identity, made, gating);
      },
    }),
  ];

  /** Checks the wallet named by the server: a wallet named by the caller proves nothing. */
  async function gatingOf(
    { address }: FarcasterIdentity,
    clientAddress: string,
    isRequested = false,
  ) {
    if (!isRequested) return undefined;
    if (address === undefined) return null;
    const owner = requestOwner(undefined, clientAddress);
    return presentGate(await checkProvenAddress(tokenGate, address, owner));
  }
}

function answer(
  { fid }: FarcasterIdentity,
  { expiresAt, token }: FarcasterToken,
  tokenGating: z.infer<typeof proven>['tokenGating'],
) {
  const shown = { success: true, fid, token, expiresAt: expiresAt.toISOString() } as const;
  return reply(200, { ...shown, ...(tokenGating !== undefined && { tokenGating }) });
}
