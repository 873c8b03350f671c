import * as z from 'zod';
import { BadRequestError } from '../../src/lib/errors.js';
import { checkGate, type GateResult } from '../../src/accounts/token-gating/check-gate.js';
import { shownAddress } from '../../src/money/chain/address.js';
import { requestOwner } from '../../src/platform/http/client-networks.js';
import type { CallerOf } from '../auth/authentication.js';
import { optionalPerson } from '../auth/person.js';
import { area } from '../http/area.js';
import type { EndpointRequest } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { answeredAddress, addressToFind } from '../views/chain-address.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const gating = area({ tag: 'Accounts', auth: optionalPerson, keyScope: 'any' });

const PATH = '/api/auth/token-gating/verify';

const requested = z.object({
  address: addressToFind.optional().describe('The wallet; your wallets by default'),
});

export const gateAnswer = z
  .strictObject({
    verified: z.boolean().describe('True if both `holds` and `proven` are true'),
    holds: z.boolean(),
    proven: z.boolean().describe('True if the address is linked to the caller'),
    address: answeredAddress.nullable(),
    balance: z.string().describe('Balance in whole tokens, with decimals'),
    threshold: z.string(),
    token: answeredAddress,
    chainId: z.number().int(),
  })
  .meta({ id: 'TokenGate' });

export const presentGate = ({ address, token, ...result }: GateResult) => ({
  ...result,
  address: address && shownAddress(address),
  token: shownAddress(token),
});

/** Creates the endpoints that check for the platform's token (spec 4.1). */
export function tokenGatingEndpoints({ tokenGate }: WebDependencies) {
  const common = {
    path: PATH,
    summary:
      "Check whether an address, or by default your wallets, hold enough of the platform's token",
    limit: LIMITS.tokenGating,
    responses: { 200: gateAnswer },
    errors: [503],
  } as const;
  return [
    gating({
      ...common,
      method: 'GET',
      operationId: 'checkTokenGate',
      query: requested,
      async handler(request) {
        return reply(200, await check(request, request.query));
      },
    }),
    gating({
      ...common,
      method: 'POST',
      operationId: 'postTokenGate',
      body: requested,
      async handler(request) {
        return reply(200, await check(request, request.body));
      },
    }),
  ];

  async function check(
    request: Pick<EndpointRequest, 'clientAddress' | 'tenant'> & {
      readonly caller: CallerOf<typeof optionalPerson>;
    },
    { address }: z.output<typeof requested>,
  ) {
    const { caller, clientAddress } = request;
    const user = caller.kind === 'anonymous' ? undefined : caller.user;
    if (!user && address === undefined) throw new BadRequestError('address is required');
    const owner = requestOwner(user?.id, clientAddress);
    return presentGate(await checkGate(tokenGate, user && request.tenant, address, owner));
  }
}
