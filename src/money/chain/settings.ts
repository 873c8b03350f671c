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
      'JSON-RPC address of a node of the payment chain, on which signatures of contract wallets are verified as well',
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
      'number of blocks after which a transaction is final, including its own block; `1` for the chain of `npm start`',
    ),
    feeBumpAfterMs: variable(
      'CHAIN_FEE_BUMP_AFTER',
      duration.prefault('30s'),
      'time after which a transaction that is in no block is sent again with a higher fee',
    ),
    maxFee: variable(
      'CHAIN_MAX_FEE',
      fee(),
      `maximum fee for a unit of gas, in the fee unit of the chain (${FEE_UNIT}); payments wait while the fee is higher`,
      { whenUnset: '500000000000' },
    ),
    maxTransactionFee: variable(
      'CHAIN_MAX_TRANSACTION_FEE',
      fee(),
      'maximum fee of a transaction, in the same unit; a payment waits while its fee is higher',
      { whenUnset: '10000000000000000000: 10 USD' },
    ),
    gas: {
      perOwner: variable(
        'GAS_A_DAY',
        gas.prefault('100000000'),
        'maximum gas per UTC day of transactions for one user whose fee the platform pays; without an account, for one wallet and for one client address',
      ),
      total: variable(
        'GAS_A_DAY_TOTAL',
        gas.prefault('2000000000'),
        'maximum gas per UTC day for all users together; when it is reached, operators are notified once a day',
      ),
    },
    treasury: variable('TREASURY_ADDRESS', address.optional(), 'who is paid', { whenUnset: NONE }),
    operatorKey: variable(
      'OPERATOR_PRIVATE_KEY',
      signer.optional(),
      'private key of the wallet from which the platform pays; only for the payments process',
      { secret: true, whenUnset: NONE },
    ),
    operatorAddress: variable(
      'OPERATOR_ADDRESS',
      address.optional(),
      'address of `OPERATOR_PRIVATE_KEY`, for processes without the key',
      { whenUnset: 'the address of `OPERATOR_PRIVATE_KEY`' },
    ),
    escrow: variable(
      'ESCROW_ADDRESS',
      address.optional(),
      'address of the contract that holds the deposits of payment sessions',
      { whenUnset: NONE },
    ),
    eas: variable(
      'EAS_ADDRESS',
      address.prefault(ZERO_ADDRESS),
      'address of the EAS contract in the domain of the attestations of agents; the contract is never called',
    ),
    usdc: {
      rpcUrl: variable(
        'USDC_RPC_URL',
        serviceAddress(mode, 'http', 'https').optional(),
        'JSON-RPC address of a node of the chain on which royalties are split',
        { secret: true, whenUnset: '`CHAIN_RPC_URL` if the chain is the same' },
      ),
      address: variable(
        'USDC_ADDRESS',
        address.optional(),
        'address of the USDC contract on the chain of royalties',
        {
          whenUnset: NONE,
        },
      ),
      chainId: variable(
        'USDC_CHAIN_ID',
        chainId().optional(),
        'id of the chain of royalties; sign-in messages of wallets may name this chain as well',
        { whenUnset: 'the same chain' },
      ),
      confirmations: variable(
        'USDC_CONFIRMATIONS',
        confirmations(),
        'like `CHAIN_CONFIRMATIONS`, for the chain of royalties',
      ),
      maxFee: variable('USDC_MAX_FEE', fee(), 'like `CHAIN_MAX_FEE`, for the chain of royalties', {
        whenUnset: '`CHAIN_MAX_FEE` if the chain is the same; otherwise 20000000000 (20 gwei)',
      }),
      maxTransactionFee: variable(
        'USDC_MAX_TRANSACTION_FEE',
        fee(),
        'like `CHAIN_MAX_TRANSACTION_FEE`, for the chain of royalties',
        {
          whenUnset:
            '`CHAIN_MAX_TRANSACTION_FEE` if the chain is the same; otherwise 5000000000000000 (0.005 ether)',
        },
      ),
    },
    platformToken: {
      address: variable(
        'PLATFORM_TOKEN_ADDRESS',
        address.optional(),
        'address of the contract of the platform token, which holders need for gated features; without it, no feature is gated',
      ),
      rpcUrl: variable(
        'PLATFORM_TOKEN_RPC_URL',
        serviceAddress(mode, 'http', 'https').optional(),
        'JSON-RPC address of a node of the chain of the platform token',
        { secret: true, whenUnset: '`CHAIN_RPC_URL`' },
      ),
      chainId: variable(
        'PLATFORM_TOKEN_CHAIN_ID',
        chainId().prefault(String(MAINNET_ID)),
        'id of the chain of the platform token',
      ),
      threshold: variable(
        'PLATFORM_TOKEN_THRESHOLD',
        amount.prefault('1'),
        'number of whole tokens that a holder needs',
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
