import { existsSync, readFileSync } from 'node:fs';
import { rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import {
  createPublicClient,
  createTestClient,
  createWalletClient,
  encodeDeployData,
  encodeFunctionData,
  erc20Abi,
  getCreate2Address,
  http,
  type Hex,
} from 'viem';
import * as z from 'zod';
import { ChainNode } from '../../src/money/chain/chain-node.js';
import { escrowAbi, escrowCode } from '../../src/money/chain/payment-escrow.js';
import { networkName } from '../../src/money/chain/networks.js';
import type { ChainSettings } from '../../src/money/chain/settings.js';
import { holdSecondsOf, type PaymentSessionSettings } from '../../src/money/sessions/settings.js';
import { PATH_USD } from '../../src/money/chain/tempo.js';
import { tryParseJson } from '../../src/lib/json.js';
import { StartFailure } from '../failure.js';
import { poll } from '../poll.js';
import { isSet } from '../settings.js';
import { anvilAccount, anvilKey, FUNDED } from './accounts.js';

/** Deploys contracts at addresses known in advance: they depend only on salt and code. */
const CREATE2_DEPLOYER: Hex = '0x4e59b44847b379578588920ca78fbf26c0b4956c';
const NO_SALT: Hex = `0x${'0'.repeat(64)}`;

/** Another token of the chain: it is not traded for pathUSD, and pays no fees. */
const USDC: Hex = '0x20c0000000000000000000000000000000000002';
const DECIMALS = 6;

/** The accounts after the funded ones: all their money was paid to them. */
const [TREASURY, OPERATOR] = [anvilKey(FUNDED), anvilKey(FUNDED + 1)];

/** A million tokens, for the operator's fees. */
const OPERATOR_MONEY = 1_000_000_000_000n;

/** More gas than any of these transactions needs. */
const GAS = 20_000_000n;
const MINED_TIMEOUT_MS = 60_000;

const hex = z.templateLiteral(['0x', z.string()]);
const account = z.object({ address: hex, privateKey: hex });

const described = z.object({
  rpcUrl: z.string(),
  chainId: z.number(),
  network: z.string(),
  token: z.object({ address: hex, symbol: z.string(), decimals: z.number() }),
  usdc: z.object({ address: hex, chainId: z.number(), decimals: z.number() }),
  treasury: hex,
  escrow: hex,
  operator: hex,
  accounts: z.array(account),
});

/** The contents of a data folder's `chain.json`: its chain, for people and programs beside the platform. */
export type LocalChain = z.output<typeof described>;

/** The account that is paid, and the account that signs the platform's payments. */
export interface Parties {
  readonly treasury: Hex;
  readonly operator: { readonly address: Hex; readonly privateKey: Hex };
}

/** Returns the parties of an environment, or else those of a local chain. */
export const partiesOf = ({
  treasury,
  operator,
}: Pick<ChainSettings, 'treasury' | 'operator'>): Parties => ({
  treasury: treasury ?? TREASURY.address,
  operator: operator && 'privateKey' in operator ? operator : OPERATOR,
});

/** Returns the file that describes the chain of a data folder. */
export const chainFile = (dataDir: string): string => path.join(dataDir, 'chain.json');

/** Reads the chain of a data folder; undefined if none was started. @throws StartFailure */
export function readLocalChain(dataDir: string): LocalChain | undefined {
  const file = chainFile(dataDir);
  if (!existsSync(file)) return undefined;
  const read = described.safeParse(tryParseJson(readFileSync(file, 'utf8')));
  if (read.success) return read.data;
  throw new StartFailure(`${file} is damaged: delete it, and npm start creates it again.`);
}

/** Returns an environment in which the data folder's chain fills in unset variables. */
export function withLocalChain(env: NodeJS.ProcessEnv, chain: LocalChain): NodeJS.ProcessEnv {
  const ofUsdc = {
    USDC_RPC_URL: chain.rpcUrl,
    USDC_ADDRESS: chain.usdc.address,
    USDC_CONFIRMATIONS: '1',
  };
  const left = {
    CHAIN_RPC_URL: chain.rpcUrl,
    CHAIN_CONFIRMATIONS: '1',
    TREASURY_ADDRESS: chain.treasury,
    ESCROW_ADDRESS: chain.escrow,
    OPERATOR_ADDRESS: chain.operator,
    // If USDC is on another chain, none of this chain's values apply.
    ...(!isSet(env, 'USDC_CHAIN_ID') && !isSet(env, 'USDC_RPC_URL') && ofUsdc),
  };
  const missing = Object.entries(left).filter(([name]) => !isSet(env, name));
  return { ...env, ...Object.fromEntries(missing) };
}

/** Removes `chain.json` if another chain is used: the description of the local one would mislead. */
export const forgetLocalChain = (dataDir: string): Promise<void> =>
  rm(chainFile(dataDir), { force: true });

/**
 * Prepares a chain for the platform: a first block of today, an operator who can pay fees, and the
 * escrow. Existing parts stay as they are. Writes the addresses to `chain.json`.
 */
export async function furnish(
  chain: { readonly rpcUrl: string; readonly chainId: number; readonly dataDir: string },
  { treasury, operator: { address: operator } }: Parties,
  { holdMs }: Pick<PaymentSessionSettings, 'holdMs'>,
): Promise<LocalChain> {
  const { rpcUrl, chainId, dataDir } = chain;
  const transport = http(rpcUrl, { timeout: 10_000 });
  const client = createPublicClient({ transport });
  const node = new ChainNode({ chainId, url: rpcUrl });

  // The genesis block has another time than the rest.
  if ((await client.getBlockNumber()) === 0n) {
    await createTestClient({ mode: 'anvil', transport }).mine({ blocks: 1 });
  }
  const first = createWalletClient({ account: anvilAccount(0), transport });
  const send = async (to: Hex, data: Hex) => {
    const hash = await first.sendTransaction({ to, data, gas: GAS, chain: null });
    // Polled until it exists: viem's own wait checks once per block, and there may be no other block.
    const receipt = await poll(() => node.receipt(hash), { timeoutMs: MINED_TIMEOUT_MS });
    if (!receipt?.succeeded) throw new Error(`The transaction ${hash} was not mined, or reverted`);
  };

  const money = { address: PATH_USD, abi: erc20Abi } as const;
  const has = await client.readContract({ ...money, functionName: 'balanceOf', args: [operator] });
  if (has === 0n) {
    const transfer = { abi: erc20Abi, functionName: 'transfer' } as const;
    await send(PATH_USD, encodeFunctionData({ ...transfer, args: [operator, OPERATOR_MONEY] }));
  }

  const isThere = async (address: Hex) => (await client.getCode({ address })) !== undefined;
  const code = encodeDeployData({
    abi: escrowAbi,
    bytecode: escrowCode,
    args: [PATH_USD, operator, treasury, holdSecondsOf(holdMs)],
  });
  const place = { from: CREATE2_DEPLOYER, salt: NO_SALT, bytecode: code };
  const escrow = getCreate2Address(place).toLowerCase() as Hex;
  if (!(await isThere(escrow))) await send(CREATE2_DEPLOYER, `${NO_SALT}${code.slice(2)}`);

  const local: LocalChain = {
    rpcUrl,
    chainId,
    network: networkName(chainId),
    token: { address: PATH_USD, symbol: 'pathUSD', decimals: DECIMALS },
    usdc: { address: USDC, chainId, decimals: DECIMALS },
    treasury,
    escrow,
    operator,
    accounts: Array.from({ length: FUNDED }, (_, index) => anvilKey(index)),
  };
  const file = chainFile(dataDir);
  await writeFile(`${file}.new`, `${JSON.stringify(local, undefined, 2)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
  return local;
}
