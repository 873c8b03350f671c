import * as z from 'zod';
import { linkIdentity } from '../../src/accounts/accounts/identities.js';
import type { ProvenIdentity } from '../../src/accounts/accounts/proven-identity.js';
import { walletIdentity } from '../../src/accounts/accounts/sign-in-by-wallet.js';
import { UnauthorizedError } from '../../src/lib/errors.js';
import { freshSession } from '../auth/fresh-session.js';
import type { SessionCaller } from '../auth/session.js';
import { area } from '../http/area.js';
import type { EndpointRequest } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import type { WebDependencies } from './dependencies.js';
import { INVALID_FARCASTER_TOKEN } from './farcaster.js';
import { identityItem, presentIdentity } from './identities.js';
import { LIMITS } from './limits.js';
import { NOT_SIGNED_BY_WALLET, walletProof } from './wallet.js';

const links = area({ tag: 'Accounts', auth: freshSession, errors: [409, 503] });

/** Creates the endpoints that link an identity, proven by the request itself, to the session's account. */
export function linkEndpoints(dependencies: WebDependencies) {
  const { farcaster, settings, wallets } = dependencies;

  async function link({ caller, origin }: Linking, identity: ProvenIdentity) {
    const owner = { userId: caller.user.id, sessionId: caller.sessionId };
    const linked = await linkIdentity(dependencies, owner, identity, origin);
    return reply(201, presentIdentity(linked));
  }

  return [
    links({
      method: 'POST',
      path: '/api/settings/identities/wallet',
      operationId: 'linkWallet',
      summary: 'Link a wallet by a message that it signed; you can then sign in with it',
      body: walletProof.strict(),
      limit: LIMITS.walletLink,
      responses: { 201: identityItem },
      async handler(request) {
        const wallet = await wallets.verify(request.body, request.caller.user.id);
        if (!wallet) throw new UnauthorizedError(NOT_SIGNED_BY_WALLET);
        return link(request, walletIdentity(wallet));
      },
    }),
    links({
      method: 'POST',
      path: '/api/settings/identities/farcaster',
      operationId: 'linkFarcaster',
      summary:
        'Link a Farcaster account, by a token of Quick Auth or of `/api/auth/farcaster/verify`',
      body: z.strictObject({ token: z.string().min(1).max(8_192) }),
      limit: LIMITS.farcaster,
      responses: { 201: identityItem },
      async handler(request) {
        const { token } = request.body;
        const proven =
          (await farcaster.tokens.find(token)) ?? (await farcaster.quickAuth.verify(token));
        if (!proven) throw new UnauthorizedError(INVALID_FARCASTER_TOKEN);
        const fid = String(proven.fid);
        const issuer = settings.farcaster.authUrl;
        return link(request, { kind: 'farcaster', issuer, subject: fid, label: fid });
      },
    }),
  ];
}

type Linking = Pick<EndpointRequest<SessionCaller>, 'caller' | 'origin'>;
