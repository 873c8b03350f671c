import * as z from 'zod';
import { shownAddress } from '../../src/money/chain/address.js';
import { reading } from '../../src/money/chain/unreadable.js';
import { NotFoundError } from '../../src/lib/errors.js';
import { formatAmount } from '../../src/types/money.js';
import { hasWallet } from '../../src/money/wallets/agent-wallets.js';
import { bearer } from '../auth/bearer.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { answeredAddress, chainAddress, addressToFind } from '../views/chain-address.js';
import { walletSignature } from '../views/wallets.js';
import type { BackendDependencies } from './dependencies.js';
import { requestedBy } from './requested-by.js';

const wallets = area({ tag: 'Underground', auth: bearer, keyScope: 'agents' });

const provided = z
  .strictObject({
    address: answeredAddress,
    agentId: z.string(),
    userId: z.string(),
  })
  .meta({ id: 'AgentWallet' });

/** Creates the endpoints for agents' wallets (spec 4.10). */
export function undergroundWalletEndpoints({
  agentWallets,
  usdc,
}: Pick<BackendDependencies, 'agentWallets' | 'usdc'>) {
  return [
    wallets({
      method: 'POST',
      path: '/api/underground/wallets',
      operationId: 'createAgentWallet',
      summary:
        "Create a wallet for an agent, held by the platform, or register the agent's own wallet",
      keyScope: 'money',
      idempotent: true,
      body: z
        .object({
          userId: z.string().min(1).max(256),
          agentId: z.string().min(1).max(256),
          address: chainAddress.optional(),
          signature: walletSignature.optional(),
        })
        .refine(({ address, signature }) => (address === undefined) === (signature === undefined), {
          error: 'address and signature must be sent together',
        }),
      responses: { 201: provided, 200: provided },
      errors: [404, 409, 503],
      async handler(request) {
        const { userId, agentId, address, signature } = request.body;
        const wallet = await agentWallets.provide(
          requestedBy(request),
          { userId, agentId },
          address && signature && { address, signature },
        );
        const shown = { address: shownAddress(wallet.address), agentId, userId };
        return reply(wallet.isNew ? 201 : 200, shown);
      },
    }),
    wallets({
      method: 'GET',
      path: '/api/underground/wallets/:address/balance',
      operationId: 'getAgentWalletBalance',
      summary: "Get the USDC balance of a wallet of a user or of one of the user's agents",
      params: z.object({ address: addressToFind.describe('The wallet') }),
      query: z.object({ userId: z.string().min(1).max(256).describe("The wallet's user") }),
      responses: { 200: z.strictObject({ address: answeredAddress, balance_usdc: z.number() }) },
      errors: [404],
      async handler({ params, query, tenant }) {
        const { address } = params;
        if (!(await hasWallet(tenant, query.userId, address))) {
          throw new NotFoundError('Wallet not found');
        }
        const balance = await reading(usdc.balanceOf(address, query.userId));
        const balance_usdc = Number(formatAmount(balance));
        return reply(200, { address: shownAddress(address), balance_usdc });
      },
    }),
  ];
}
