import { z } from 'zod';
import { chainTitle } from '../../src/chain/networks.js';
import { reading } from '../../src/chain/unreadable.js';
import { walletBalances, type TokenBalance } from '../../src/chain/wallet-balances.js';
import { formatAmount } from '../../src/money/money.js';
import type { Settings } from '../../src/settings.js';
import { anonymous } from '../auth/anonymous.js';
import { area } from '../http/area.js';
import { reply } from '../http/reply.js';
import { chainAddress } from './chain-address.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';

const wallets = area({ tag: 'Wallets', auth: anonymous });

const balanceOfToken = z.strictObject({
  address: z.string().describe("The token's contract"),
  balance: z.string().describe('Whole ones, with six decimals'),
  balanceRaw: z.string().describe('Base units'),
});

/** What the chain says of an address (spec 4.9). */
export const balancesAnswer = z.strictObject({
  address: z.string(),
  chain: z.string(),
  chainId: z.number().int(),
  testnet: z.boolean(),
  feeToken: balanceOfToken.describe('What it pays fees with'),
  pathUsd: balanceOfToken,
});

/** What anybody may know of a wallet. */
export function walletBalanceEndpoints({
  chain,
  settings,
}: Pick<WebDependencies, 'chain'> & { readonly settings: Pick<Settings, 'chain'> }) {
  const { testnet, chainId } = settings.chain;
  return [
    wallets({
      method: 'GET',
      path: '/api/wallet',
      summary: 'What the chain says of an address',
      query: z.object({ address: chainAddress }),
      limit: LIMITS.walletBalances,
      responses: { 200: balancesAnswer },
      async handler({ query: { address } }) {
        const { feeToken, pathUsd } = await reading(walletBalances(chain, address));
        return reply(200, {
          address,
          chain: chainTitle(testnet),
          chainId,
          testnet,
          feeToken: presentBalance(feeToken),
          pathUsd: presentBalance(pathUsd),
        });
      },
    }),
  ];
}

const presentBalance = ({ token, units }: TokenBalance) => ({
  address: token,
  balance: formatAmount(units),
  balanceRaw: String(units),
});
