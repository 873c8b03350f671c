import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import {
  createPublicClient,
  createWalletClient,
  TransactionReceiptNotFoundError,
  getCreate2Address,
  http,
  type Hex,
} from 'viem';
import type { LocalAccount } from 'viem/accounts';
import { tempo } from 'viem/chains';
import { anvilAccount } from '../../../dev/chain/accounts.js';
import { anvilProgram } from '../../../dev/chain/anvil-program.js';
import { PATH_USD } from '../../../src/money/chain/tempo.js';
import { until } from '../until.js';
import { walletCode } from './test-wallet.js';

/** Chain id of the mainnet, which wallets sign for. */
export const CHAIN_ID = 4217;

export { PATH_USD };

/** Deployer whose contract addresses depend only on salt and code. */
const CREATE2_DEPLOYER = '0x4e59b44847b379578588920ca78fbf26c0b4956c';
const NO_SALT: Hex = `0x${'0'.repeat(64)}`;

const CHAIN = { ...tempo, id: CHAIN_ID } as const;

/** More gas than any test transaction needs: the node estimates badly for new addresses. */
const GAS = 5_000_000n;

/** Returns undefined while a transaction is not in a block, for polling. */
export const notYet = (error: unknown): undefined => {
  if (!(error instanceof TransactionReceiptNotFoundError)) throw error;
};

const STARTING_MS = 60_000;

/** A call in a transaction. */
export interface Call {
  readonly to: Hex;
  readonly data: Hex;
}

/** A chain for a single test. */
export interface TestChain {
  readonly rpcUrl: string;
  /** Returns one of ten accounts that hold pathUSD. */
  account(index: number): LocalAccount;
  /** Returns the address of the owner's smart wallet, deployed or not. */
  walletOf(owner: LocalAccount): Hex;
  /** Deploys the owner's smart wallet. */
  deployWallet(owner: LocalAccount): Promise<Hex>;
  /** Returns the call that deploys the owner's smart wallet. */
  deployment(owner: LocalAccount): { readonly address: Hex; readonly data: Hex };
  /** Sends base units of pathUSD from the first account. @returns the transaction hash. */
  pay(to: Hex, amount: bigint): Promise<Hex>;
  /** Sends calls of an account in one transaction, which may be reverted. @returns the hash. */
  send(from: LocalAccount, calls: readonly Call[]): Promise<Hex>;
  close(): Promise<void>;
}

/** Returns the deployer, the data that deploys an owner's wallet, and the wallet's address. */
export const deploymentOf = (owner: LocalAccount) => {
  const place = {
    from: CREATE2_DEPLOYER,
    salt: NO_SALT,
    bytecode: walletCode(owner.address),
  } as const;
  return {
    deployer: CREATE2_DEPLOYER,
    data: `${NO_SALT}${walletCode(owner.address).slice(2)}`,
    deployed: getCreate2Address(place),
  } as const;
};

/** Starts a chain on a free port that mines a block for each transaction. */
export async function testChain(): Promise<TestChain> {
  const { close, rpcUrl } = await startNode(CHAIN_ID, ['--network', 'tempo', '--hardfork', 't4']);
  const client = createPublicClient({ transport: http(rpcUrl), pollingInterval: 20 });

  // Polls the receipt: viem's own wait checks once a block, and no other block may follow.
  const mined = (hash: Hex) => until(() => client.getTransactionReceipt({ hash }).catch(notYet));
  const send = async (from: LocalAccount, calls: readonly Call[]) => {
    const wallet = createWalletClient({ account: from, chain: CHAIN, transport: http(rpcUrl) });
    const [call, another] = calls;
    const hash = await wallet.sendTransaction(
      another ? { calls, gas: GAS } : { ...call, gas: GAS },
    );
    await mined(hash);
    return hash;
  };
  const succeed = async (to: Hex, data: Hex) => {
    const hash = await send(anvilAccount(0), [{ to, data }]);
    const { status } = await mined(hash);
    if (status !== 'success') throw new Error(`the transaction ${hash} was reverted`);
    return hash;
  };
  const deployment = (owner: LocalAccount) => {
    const { data, deployer } = deploymentOf(owner);
    return { address: deployer, data } as const;
  };
  const walletOf = (owner: LocalAccount) => deploymentOf(owner).deployed;

  // The time of the genesis block differs from that of the other blocks.
  await client.request({ method: 'evm_mine', params: undefined } as never);
  return {
    rpcUrl,
    account: anvilAccount,
    walletOf,
    deployment,
    send,
    async deployWallet(owner) {
      const { address, data } = deployment(owner);
      await succeed(address, data);
      return walletOf(owner);
    },
    async pay(to, amount) {
      const words = [to.slice(2), amount.toString(16)].map((word) => word.padStart(64, '0'));
      return succeed(PATH_USD, `0xa9059cbb${words.join('')}`);
    },
    close,
  };
}

/** Starts a chain with fees in its own coins that mines a block for each transaction. */
export const ordinaryChain = (chainId: number): Promise<Pick<TestChain, 'rpcUrl' | 'close'>> =>
  startNode(chainId, []);

async function startNode(chainId: number, args: readonly string[]) {
  const child = spawn(anvilProgram(), [...args, '--chain-id', String(chainId), '--port', '0'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const ended = once(child, 'exit');
  return {
    rpcUrl: await addressOf(child.stdout),
    async close() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** Returns the node's address. Keeps reading, so that the node never blocks on its output. */
function addressOf(output: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error('the chain did not start')), STARTING_MS);
    const lines = createInterface({ input: output });
    lines.on('line', (line) => {
      const [, address] = /^Listening on (\S+)$/.exec(line) ?? [];
      if (address === undefined) return;
      clearTimeout(late);
      resolve(`http://${address}`);
    });
    lines.once('close', () => {
      clearTimeout(late);
      reject(new Error('the chain has ended'));
    });
  });
}
