import type { Hex } from 'viem';
import { privateKeyToAddress } from 'viem/accounts';
import { address as serviceAddress } from '../../platform/environment/address.js';
import { area, variable, type SettingsOf } from '../../platform/environment/area.js';
import {
  boolean,
  count,
  duration,
  textAs,
  textMatching,
} from '../../platform/environment/types.js';
import { parseAddress } from './address.js';
import { feeLimitsOf } from './fee-limits.js';

const MAINNET_ID = 4217;
const TESTNET_ID = 42_431;

/** Documented default of optional chain settings. */
const NONE = 'none; with `npm start` that of its own chain';

const ZERO_ADDRESS = `0x${'0'.repeat(40)}`;

const chainId = () => count({ most: Number.MAX_SAFE_INTEGER });

/** An address in lower case. */
const address = textAs(
  '0x and 40 hex digits, in one letter case or with a right checksum (EIP-55)',
  parseAddress,
);

const signer = textAs('0x and the 64 hex digits of a private key', (value) => {
  const privateKey = value as Hex; // an invalid key is refused below
  try {
    return { privateKey, address: privateKeyToAddress(privateKey).toLowerCase() as Hex };
  } catch {
    return undefined; // not a valid private key of the curve
  }
});

const confirmations = () => count({ most: 1_000 }).prefault('3');

/** A fee in the chain's fee unit. */
const fee = () =>
  textAs('a whole number from 1, with at most 30 digits', (value) =>
    /^[1-9]\d{0,29}$/.test(value) ? BigInt(value) : undefined,
  ).optional();

const gas = count({ most: Number.MAX_SAFE_INTEGER });

const FEE_UNIT = '10^-18 of a dollar on Tempo, else wei';

/** An amount with at most 18 decimals, the usual maximum for tokens. */
const amount = textMatching(
  /^\d{1,30}(?:\.\d{1,18})?$/,
  'a number like 1 or 0.5, with at most 18 decimals',
);

export const chainSettings = area(
  'Chain',
  (mode) => ({
    rpcUrl: variable(
      'CHAIN_RPC_URL',
      serviceAddress(mode, 'http', 'https').optional(),
      'JSON-RPC of a node of the chain that payments are made on, and that wallets are on which are contracts',
      { secret: true, whenUnset: NONE },
    ),
    testnet: variable(
      'CHAIN_TESTNET',
      boolean.prefault('false'),
      `\`true\`: the chain is ${TESTNET_ID} in place of ${MAINNET_ID}`,
    ),
    confirmations: variable(
      'CHAIN_CONFIRMATIONS',
      confirmations(),
      'blocks of that chain from the one of a transaction to the latest, both counted, until it is final; `npm start` waits for 1 on its own chain',
    ),
    feeBumpAfterMs: variable(
      'CHAIN_FEE_BUMP_AFTER',
      duration.prefault('30s'),
      'for how long a transaction waits for its block until it offers a higher fee',
    ),
    maxFee: variable(
      'CHAIN_MAX_FEE',
      fee(),
      `the most that a unit of gas may cost there, in the chain's fee unit (${FEE_UNIT}); above it payments wait`,
      { whenUnset: '500000000000' },
    ),
    maxTransactionFee: variable(
      'CHAIN_MAX_TRANSACTION_FEE',
      fee(),
      'the most that the fee of a transaction may be there, in the same unit; above it the payment waits',
      { whenUnset: '10000000000000000000: 10 USD' },
    ),
    gas: {
      perOwner: variable(
        'GAS_A_DAY',
        gas.prefault('100000000'),
        'the most gas that one user may cause in a UTC day in transactions whose fee the platform pays; without an account, one wallet and one client address',
      ),
      total: variable(
        'GAS_A_DAY_TOTAL',
        gas.prefault('2000000000'),
        'the same for all together; beyond it operators are notified once a day',
      ),
    },
    treasury: variable('TREASURY_ADDRESS', address.optional(), 'who is paid', { whenUnset: NONE }),
    operatorKey: variable(
      'OPERATOR_PRIVATE_KEY',
      signer.optional(),
      'the key that signs what the platform pays; for the process of payments alone',
      { secret: true, whenUnset: NONE },
    ),
    operatorAddress: variable(
      'OPERATOR_ADDRESS',
      address.optional(),
      'the address of that key, for processes without the key',
      { whenUnset: 'the address of `OPERATOR_PRIVATE_KEY`' },
    ),
    escrow: variable(
      'ESCROW_ADDRESS',
      address.optional(),
      'the contract that holds the deposits of payment sessions',
      { whenUnset: NONE },
    ),
    eas: variable(
      'EAS_ADDRESS',
      address.prefault(ZERO_ADDRESS),
      "the contract of EAS that agents' attestations name in their domain; it is never called",
    ),
    usdc: {
      rpcUrl: variable(
        'USDC_RPC_URL',
        serviceAddress(mode, 'http', 'https').optional(),
        'JSON-RPC of a node of the chain that royalties are split on',
        { secret: true, whenUnset: '`CHAIN_RPC_URL` where the chain is the same' },
      ),
      address: variable('USDC_ADDRESS', address.optional(), 'the contract of USDC there', {
        whenUnset: NONE,
      }),
      chainId: variable(
        'USDC_CHAIN_ID',
        chainId().optional(),
        "the id of that chain, which wallets' messages may name as well",
        { whenUnset: 'the same chain' },
      ),
      confirmations: variable(
        'USDC_CONFIRMATIONS',
        confirmations(),
        'the same as `CHAIN_CONFIRMATIONS`, of that chain',
      ),
      maxFee: variable('USDC_MAX_FEE', fee(), 'the same as `CHAIN_MAX_FEE`, of that chain', {
        whenUnset: 'that of the same chain; 20000000000 (20 gwei) off Tempo',
      }),
      maxTransactionFee: variable(
        'USDC_MAX_TRANSACTION_FEE',
        fee(),
        'the same as `CHAIN_MAX_TRANSACTION_FEE`, of that chain',
        { whenUnset: 'that of the same chain; 5000000000000000 (0.005 ether) off Tempo' },
      ),
    },
    platformToken: {
      address: variable(
        'PLATFORM_TOKEN_ADDRESS',
        address.optional(),
        'the contract of the token that some things are for the holders of; without it nobody is asked',
      ),
      rpcUrl: variable(
        'PLATFORM_TOKEN_RPC_URL',
        serviceAddress(mode, 'http', 'https').optional(),
        'JSON-RPC of a node of its chain',
        { secret: true, whenUnset: '`CHAIN_RPC_URL`' },
      ),
      chainId: variable(
        'PLATFORM_TOKEN_CHAIN_ID',
        chainId().prefault(String(MAINNET_ID)),
        'and the id of that chain',
      ),
      threshold: variable(
        'PLATFORM_TOKEN_THRESHOLD',
        amount.prefault('1'),
        'how many whole tokens somebody holds who passes',
      ),
    },
  }),
  ({
    maxFee,
    maxTransactionFee,
    operatorAddress,
    operatorKey,
    platformToken: token,
    testnet,
    usdc: { maxFee: usdcMaxFee, maxTransactionFee: usdcMaxTransactionFee, ...usdc },
    ...values
  }) => {
    const chainId = testnet ? TESTNET_ID : MAINNET_ID;
    const usdcChainId = usdc.chainId ?? chainId;
    const sameChainUrl = usdcChainId === chainId ? values.rpcUrl : undefined;
    const defaults = feeLimitsOf(chainId);
    const feeLimits = {
      unit: maxFee ?? defaults.unit,
      transaction: maxTransactionFee ?? defaults.transaction,
    };
    const usdcDefaults = usdcChainId === chainId ? feeLimits : feeLimitsOf(usdcChainId);
    return {
      ...values,
      feeLimits,
      /** The signer of the platform's payments; only the payment process has the key. */
      operator: operatorKey ?? (operatorAddress && { address: operatorAddress }),
      chainId,
      testnet,
      usdc: {
        ...usdc,
        chainId: usdcChainId,
        rpcUrl: usdc.rpcUrl ?? sameChainUrl,
        feeLimits: {
          unit: usdcMaxFee ?? usdcDefaults.unit,
          transaction: usdcMaxTransactionFee ?? usdcDefaults.transaction,
        },
      },
      /** The chain ids allowed in a sign-in message. */
      signInChainIds: [...new Set([chainId, usdcChainId])],
      /** Undefined if no platform token is required. */
      platformToken:
        token.address === undefined
          ? undefined
          : { ...token, address: token.address, rpcUrl: token.rpcUrl ?? values.rpcUrl },
    };
  },
  ({ operatorAddress, operatorKey }) =>
    operatorKey && operatorAddress && operatorAddress !== operatorKey.address
      ? ['OPERATOR_ADDRESS must be that of OPERATOR_PRIVATE_KEY']
      : [],
);

/** A key that only the payment process may have, so that a break-in elsewhere cannot steal it. */
export const foreignKeySettings = area('', () => ({
  operatorKey: variable(
    'OPERATOR_PRIVATE_KEY',
    textAs('left to worker/payments.js: no other process has it', () => undefined).optional(),
    '',
  ),
}));

export type ChainSettings = SettingsOf<typeof chainSettings>;
