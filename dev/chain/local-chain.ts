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

/** Makes contracts at addresses that are known before: salt and code are all that it takes. */
const CREATE2_DEPLOYER: Hex = '0x4e59b44847b379578588920ca78fbf26c0b4956c';
const NO_SALT: Hex = `0x${'0'.repeat(64)}`;

/** Another of the chain's tokens: nobody has it for pathUSD, and no fees are paid in it. */
const USDC: Hex = '0x20c0000000000000000000000000000000000002';
const DECIMALS = 6;

/** Those after the ones that have money: what they have is what came to them. */
const [TREASURY, OPERATOR] = [anvilKey(FUNDED), anvilKey(FUNDED + 1)];

/** A million, for the operator's fees. */
const OPERATOR_MONEY = 1_000_000_000_000n;

/** More than any of this takes. */
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

/** The chain of a data folder, for people and programs beside the platform: its `chain.json`. */
export type LocalChain = z.output<typeof described>;

/** Who is paid, and who signs what the platform pays. */
export interface Parties {
  readonly treasury: Hex;
  readonly operator: { readonly address: Hex; readonly privateKey: Hex };
}

/** Those of an environment, or else those of a chain of one's own. */
export const partiesOf = ({
  treasury,
  operator,
}: Pick<ChainSettings, 'treasury' | 'operator'>): Parties => ({
  treasury: treasury ?? TREASURY.address,
  operator: operator && 'privateKey' in operator ? operator : OPERATOR,
});

/** Where the chain of a data folder is told of. */
export const chainFile = (dataDir: string): string => path.join(dataDir, 'chain.json');

/** Undefined where no chain has been started. @throws StartFailure */
export function readLocalChain(dataDir: string): LocalChain | undefined {
  const file = chainFile(dataDir);
  if (!existsSync(file)) return undefined;
  const read = described.safeParse(tryParseJson(readFileSync(file, 'utf8')));
  if (read.success) return read.data;
  throw new StartFailure(`${file} is damaged: delete it, and npm start makes it anew.`);
}

/** An environment with what it leaves to the chain of a data folder. */
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
    // Where it is on another chain, nothing of this one is true of it.
    ...(!isSet(env, 'USDC_CHAIN_ID') && !isSet(env, 'USDC_RPC_URL') && ofUsdc),
  };
  const missing = Object.entries(left).filter(([name]) => !isSet(env, name));
  return { ...env, ...Object.fromEntries(missing) };
}

/** Where another chain is used: what is told of ours would mislead. */
export const forgetLocalChain = (dataDir: string): Promise<void> =>
  rm(chainFile(dataDir), { force: true });

/**
 * Makes of a chain what the platform needs: a first block of today, an operator who can pay fees, and the
 * escrow. What is there stays as it is. Tells in `chain.json` what is where.
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

  // The genesis block is of another time than the rest.
  if ((await client.getBlockNumber()) === 0n) {
    await createTestClient({ mode: 'anvil', transport }).mine({ blocks: 1 });
  }
  const first = createWalletClient({ account: anvilAccount(0), transport });
  const send = async (to: Hex, data: Hex) => {
    const hash = await first.sendTransaction({ to, data, gas: GAS, chain: null });
    // Asked for until it is there: viem's own wait looks once a block, and there may be no other block.
    const receipt = await poll(() => node.receipt(hash), { timeoutMs: MINED_TIMEOUT_MS });
    if (!receipt?.succeeded) throw new Error(`The transaction ${hash} was not made, or reverted`);
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
