import * as z from 'zod';
import { normalizeEmail } from '../../src/accounts/accounts/email.js';
import { shownAddress } from '../../src/money/chain/address.js';
import { reading } from '../../src/money/chain/unreadable.js';
import {
  BadRequestError,
  ForbiddenError,
  NotFoundError,
  ServiceError,
  UnauthorizedError,
} from '../../src/lib/errors.js';
import { formatAmount, formattedAmount } from '../../src/types/money.js';
import type { Settings } from '../../src/settings.js';
import type { WalletOwner } from '../../src/money/wallets/user-wallets.js';
import { requestOwner } from '../../src/platform/http/client-networks.js';
import { anonymous } from '../auth/anonymous.js';
import type { CallerOf } from '../auth/authentication.js';
import { optionalPerson, person } from '../auth/person.js';
import { area } from '../http/area.js';
import type { EndpointRequest } from '../http/endpoint.js';
import { reply } from '../http/reply.js';
import { answeredAddress, addressToFind } from '../views/chain-address.js';
import type { WebDependencies } from './dependencies.js';
import { LIMITS } from './limits.js';
import { balancesAnswer, balancesOf } from './wallet-balances.js';

/** Writes need `money`; any key reads what everybody may read of a wallet, and its owner's addresses. */
const wallets = area({
  tag: 'Wallets',
  auth: person,
  keyScope: 'money',
  limit: LIMITS.wallets,
});

/** Networks reported for provider wallets and imported wallets. */
const PROVIDER_NETWORKS = ['base', 'base-sepolia'];
const IMPORTED_NETWORK = 'base-sepolia';

const NOT_CONFIGURED = 'Wallet provider not configured';
const SETUP = 'Set WALLETPROV_API_URL and WALLETPROV_API_KEY';
const WARNING = 'The platform stores the key of this wallet encrypted, and never shows it';

const agenticWallet = z
  .strictObject({
    agenticWallet: z.strictObject({
      status: z.literal('configured'),
      projectId: z.string(),
      features: z.array(z.string()),
    }),
    instructions: z.string(),
  })
  .meta({ id: 'AgenticWallet' });

const ownWallet = z
  .strictObject({
    address: answeredAddress,
    balance: formattedAmount.describe('USDC'),
    network: z.string(),
    hasWallet: z.literal(true),
    createdAt: z.iso.datetime(),
  })
  .meta({ id: 'OwnWallet' });

const noWallet = z
  .strictObject({
    address: z.null(),
    balance: formattedAmount,
    network: z.string(),
    hasWallet: z.literal(false),
    message: z.string(),
  })
  .meta({ id: 'NoWallet' });

const created = z
  .strictObject({
    address: answeredAddress,
    network: z.string(),
    message: z.string(),
  })
  .meta({ id: 'CreatedWallet' });

const seed = z
  .strictObject({
    address: answeredAddress,
    network: z.string(),
    createdAt: z.iso.datetime(),
    warning: z.string(),
  })
  .meta({ id: 'WalletDetails' });

type Parts = Pick<WebDependencies, 'chain' | 'usdc' | 'userWallets' | 'walletProvider'> & {
  readonly settings: Pick<Settings, 'chain'>;
};

/** Creates the endpoints for users' wallets (spec 4.9). */
export function userWalletEndpoints(parts: Parts) {
  return [
    ...ownWalletEndpoints(parts),
    ...providerWalletEndpoints(parts),
    ...importedWalletEndpoints(parts),
  ];
}

/** Creates the endpoints for wallets whose keys the platform holds, and for the details of any wallet. */
function ownWalletEndpoints({ chain, settings, usdc, userWallets, walletProvider }: Parts) {
  return [
    wallets({
      method: 'GET',
      path: '/api/wallet',
      operationId: 'getWallet',
      summary:
        'Get the on-chain balances of an address; without an address, of your wallet, or how to create one at the wallet provider',
      auth: optionalPerson,
      keyScope: 'any',
      query: z.object({
        address: addressToFind.optional().describe('The wallet; your own by default'),
      }),
      responses: { 200: z.union([balancesAnswer, agenticWallet, ownWallet, noWallet]) },
      errors: [401],
      async handler({ caller, clientAddress, query, tenant }) {
        if (query.address !== undefined) {
          const userId = caller.kind === 'anonymous' ? undefined : caller.user.id;
          const owner = requestOwner(userId, clientAddress);
          const queries = chain.onBehalfOf({ owner, isUrgent: true });
          return reply(200, await balancesOf(queries, settings.chain, query.address));
        }
        if (walletProvider.state === 'on') {
          return reply(200, {
            agenticWallet: {
              status: 'configured',
              projectId: walletProvider.projectId,
              features: ['create', 'address'],
            },
            instructions:
              'POST /api/wallet/create {"email"} with the verified address of your account creates your wallet, which is opened by that mailbox',
          });
        }
        if (caller.kind === 'anonymous') throw new UnauthorizedError();
        const { network } = usdc;
        const wallet = await userWallets.find(tenant, caller.user.id);
        if (!wallet) {
          const message = 'You have no wallet yet: POST /api/wallet {"action": "create"} makes one';
          return reply(200, {
            address: null,
            balance: formatAmount(0n),
            network,
            hasWallet: false,
            message,
          });
        }
        const balance = formatAmount(await reading(usdc.balanceOf(wallet.address, caller.user.id)));
        const createdAt = wallet.createdAt.toISOString();
        const address = shownAddress(wallet.address);
        return reply(200, { address, balance, network, hasWallet: true, createdAt });
      },
    }),
    wallets({
      method: 'POST',
      path: '/api/wallet',
      operationId: 'createOrReadWallet',
      summary: 'Create your wallet (`create`), or get its public details (`get_seed`)',
      idempotent: true,
      body: z.object({ action: z.string().describe('`create`, `get_seed` or `export_seed`') }),
      responses: { 200: z.union([created, seed]) },
      errors: [403, 404],
      async handler(request) {
        const { network } = usdc;
        switch (request.body.action) {
          case 'create': {
            const address = shownAddress(await userWallets.create(ownerOf(request)));
            return reply(200, { address, network, message: 'Your wallet has been created' });
          }
          case 'get_seed': {
            const wallet = await userWallets.find(request.tenant, request.caller.user.id);
            if (!wallet) throw new NotFoundError('No wallet found');
            const createdAt = wallet.createdAt.toISOString();
            const address = shownAddress(wallet.address);
            return reply(200, { address, network, createdAt, warning: WARNING });
          }
          case 'export_seed':
            throw new ForbiddenError('Wallet keys cannot be exported');
          default:
            throw new BadRequestError('Invalid action');
        }
      },
    }),
    wallets({
      method: 'GET',
      path: '/api/wallet/address',
      operationId: 'getWalletAddress',
      summary: 'Get the address of your wallet of any kind',
      auth: optionalPerson,
      keyScope: 'any',
      responses: {
        200: z.union([
          z.strictObject({ authenticated: z.literal(true), address: answeredAddress.nullable() }),
          z.strictObject({
            authenticated: z.literal(false),
            needsAuth: z.literal(true),
            message: z.string(),
          }),
          z.strictObject({
            authenticated: z.literal(false),
            needsAuth: z.literal(true),
            error: z.string(),
            setup: z.string(),
          }),
        ]),
      },
      async handler({ caller, tenant }) {
        const isSignedIn = caller.kind !== 'anonymous';
        const address = isSignedIn && (await userWallets.firstAddress(tenant, caller.user.id));
        if (address) return reply(200, { authenticated: true, address: shownAddress(address) });
        const refused = { authenticated: false, needsAuth: true } as const;
        if (walletProvider.state === 'incomplete') {
          return reply(200, { ...refused, error: NOT_CONFIGURED, setup: SETUP });
        }
        if (isSignedIn) return reply(200, { authenticated: true, address: null });
        return reply(200, { ...refused, message: 'Sign in to see the address of your wallet' });
      },
    }),
  ];
}

function providerWalletEndpoints({ userWallets, walletProvider }: Parts) {
  return [
    wallets({
      method: 'POST',
      path: '/api/wallet/create',
      operationId: 'createProviderWallet',
      summary:
        "Create or find your wallet at the wallet provider; access is by your account's mailbox",
      idempotent: true,
      body: z.object({ email: z.string().min(1) }),
      responses: {
        200: z.strictObject({
          success: z.literal(true),
          walletAddress: answeredAddress,
          walletId: z.string(),
          networks: z.array(z.string()),
        }),
      },
      async handler(request) {
        if (walletProvider.state !== 'on') {
          throw new ServiceError(500, NOT_CONFIGURED, undefined, { setup: SETUP });
        }
        const email = normalizeEmail(request.body.email);
        const { address, walletId } = await userWallets.createAtProvider(ownerOf(request), email);
        return reply(200, {
          success: true,
          walletAddress: shownAddress(address),
          walletId,
          networks: PROVIDER_NETWORKS,
        });
      },
    }),
  ];
}

function importedWalletEndpoints({ userWallets }: Parts) {
  return [
    wallets({
      method: 'GET',
      path: '/api/wallet/walletprov',
      operationId: 'describeWalletImport',
      summary: 'Describe the wallets that can be imported',
      auth: anonymous,
      responses: {
        200: z.strictObject({
          status: z.literal('ok'),
          type: z.literal('evm_wallet'),
          supportedChains: z.array(z.string()),
        }),
      },
      handler: () =>
        reply(200, { status: 'ok', type: 'evm_wallet', supportedChains: PROVIDER_NETWORKS }),
    }),
    wallets({
      method: 'POST',
      path: '/api/wallet/walletprov',
      operationId: 'importWallet',
      summary: 'Import a wallet by its private key, or generate a new key; the key is never shown',
      idempotent: true,
      body: z
        .object({ privateKey: z.string().optional().describe('0x and 64 hex digits') })
        .optional(),
      responses: {
        200: z.strictObject({
          success: z.literal(true),
          address: answeredAddress,
          network: z.string(),
        }),
      },
      async handler(request) {
        const address = await userWallets.import(ownerOf(request), request.body?.privateKey);
        return reply(200, {
          success: true,
          address: shownAddress(address),
          network: IMPORTED_NETWORK,
        });
      },
    }),
  ];
}

const ownerOf = ({
  caller,
  idempotencyId,
  requestId,
  tenant,
}: EndpointRequest<CallerOf<typeof person>>): WalletOwner => {
  const { id } = caller.user;
  const credential =
    caller.kind === 'session' ? { sessionId: caller.sessionId } : { keyId: caller.keyId };
  return { actor: id, userId: id, credential, tenant, requestId, idempotencyId };
};
