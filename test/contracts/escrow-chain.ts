import {
  createPublicClient,
  createTestClient,
  encodeDeployData,
  encodeFunctionData,
  erc20Abi,
  http,
  keccak256,
  maxUint256,
  parseAbi,
  toHex,
  type Hex,
} from 'viem';
import { generatePrivateKey, privateKeyToAddress, type LocalAccount } from 'viem/accounts';
import { FUNDED } from '../../dev/chain/accounts.js';
import { escrowAbi, escrowCode } from '../../src/money/chain/payment-escrow.js';
import { FEE_MANAGER, PATH_USD } from '../../src/money/chain/tempo.js';
import { CHAIN_ID, notYet, testChain } from '../support/chain/chain.js';
import { until } from '../support/until.js';

/** A token other than the escrow's. */
export const ALPHA_USD = '0x20c0000000000000000000000000000000000001';
const feeManagerAbi = parseAbi(['function setUserToken(address)']);

export const HOLD_SECONDS = 1_000;

/** A deadline past the end of every test. */
export const FAR = 2n ** 40n;

const GAS = toHex(20_000_000);

/** A payer's authorization of a hold. */
export interface Authorization {
  readonly payer: Hex;
  readonly amount: bigint;
  readonly nonce: Hex;
  readonly deadline: bigint;
}

/** Operator, treasury and hold time of an escrow. */
export interface EscrowSetup {
  readonly operator: Hex;
  readonly treasury: Hex;
  readonly holdSeconds: number;
}

/** The outcome of one transaction. */
export interface Outcome {
  readonly succeeded: boolean;
  /** Unix seconds of its block. */
  readonly timestamp: number;
}

export type EscrowCall = Parameters<typeof encodeFunctionData<typeof escrowAbi>>[0];

let nonces = 0;
export const newNonce = (): Hex => keccak256(toHex(`nonce ${nonces++}`));

/** Starts a chain with an escrow, an empty treasury, and accounts that can send transactions. */
export async function escrowChain() {
  const chain = await testChain();
  const transport = http(chain.rpcUrl);
  const client = createPublicClient({ transport });
  const time = createTestClient({ mode: 'anvil', transport });
  const operator = chain.account(1);
  const treasury = privateKeyToAddress(generatePrivateKey());

  /** Sends a transaction of an account whose key the node has or impersonates. */
  const send = async (from: Hex, to: Hex | undefined, data: Hex) => {
    const hash = await client.request({
      method: 'eth_sendTransaction',
      params: [{ from, ...(to && { to }), data, gas: GAS }],
    } as never);
    // viem's own wait polls once a block, and there may be no further block.
    return until(() => client.getTransactionReceipt({ hash }).catch(notYet));
  };
  const deploy = async (token: Hex, over: Partial<EscrowSetup> = {}): Promise<Hex> => {
    const setup = { operator: operator.address, treasury, holdSeconds: HOLD_SECONDS, ...over };
    const data = encodeDeployData({
      abi: escrowAbi,
      bytecode: escrowCode,
      args: [token, setup.operator, setup.treasury, BigInt(setup.holdSeconds)],
    });
    const { contractAddress, status } = await send(operator.address, undefined, data);
    if (status !== 'success' || !contractAddress) throw new Error('escrow deployment failed');
    return contractAddress;
  };
  const address = await deploy(PATH_USD);
  // Fees are paid in another token, so only the escrow changes these accounts' pathUSD.
  const args = [ALPHA_USD] as const;
  const choice = encodeFunctionData({ abi: feeManagerAbi, functionName: 'setUserToken', args });
  for (let index = 0; index < FUNDED; index++) {
    await send(chain.account(index).address, FEE_MANAGER, choice);
  }
  const domain = (verifyingContract = address, chainId = CHAIN_ID) =>
    ({ name: 'PaymentEscrow', version: '1', chainId, verifyingContract }) as const;

  return {
    chain,
    client,
    operator,
    treasury,
    address,
    deploy,
    send,
    balanceOf: (owner: Hex) =>
      client.readContract({
        address: PATH_USD,
        abi: erc20Abi,
        functionName: 'balanceOf',
        args: [owner],
      }),
    async approve(owner: Hex, spender = address) {
      const args = [spender, maxUint256] as const;
      const data = encodeFunctionData({ abi: erc20Abi, functionName: 'approve', args });
      await send(owner, PATH_USD, data);
    },
    /** Returns the calls of the escrow contract at an address. */
    at(escrow: Hex) {
      return {
        address: escrow,
        available: (payer: Hex) =>
          client.readContract({
            address: escrow,
            abi: escrowAbi,
            functionName: 'available',
            args: [payer],
          }),
        async hold(id: Hex) {
          const read = {
            address: escrow,
            abi: escrowAbi,
            functionName: 'holds',
            args: [id],
          } as const;
          const [payer, amount, settled, expiry, closed] = await client.readContract(read);
          return { payer, amount, settled, expiry: Number(expiry), closed };
        },
        /** Returns the outcome of a simulated call: the name of its error, or `ok`. */
        async outcomeOf(from: Hex, call: EscrowCall): Promise<string> {
          const { abi, functionName, args } = call as never as Parameters<
            typeof client.simulateContract
          >[0];
          try {
            await client.simulateContract({
              account: from,
              address: escrow,
              abi,
              functionName,
              args,
            });
            return 'ok';
          } catch (error) {
            const found = (error as { walk?: (is: (e: unknown) => boolean) => unknown }).walk?.(
              (each) => (each as { data?: { errorName?: string } }).data?.errorName !== undefined,
            ) as { data?: { errorName?: string } } | undefined;
            if (found?.data?.errorName === undefined) throw error;
            return found.data.errorName;
          }
        },
        async send(from: Hex, call: EscrowCall): Promise<Outcome> {
          const receipt = await send(from, escrow, encodeFunctionData(call));
          const { timestamp } = await client.getBlock({ blockNumber: receipt.blockNumber });
          return { succeeded: receipt.status === 'success', timestamp: Number(timestamp) };
        },
      };
    },
    idOf: (payer: Hex, nonce: Hex): Promise<Hex> =>
      client.readContract({
        address,
        abi: escrowAbi,
        functionName: 'holdId',
        args: [payer, nonce],
      }),
    sign: (account: LocalAccount, message: Authorization, signedFor = domain()): Promise<Hex> =>
      account.signTypedData({
        domain: signedFor,
        types: {
          Hold: [
            { name: 'payer', type: 'address' },
            { name: 'amount', type: 'uint256' },
            { name: 'nonce', type: 'bytes32' },
            { name: 'deadline', type: 'uint64' },
          ],
        },
        primaryType: 'Hold',
        message,
      }),
    domain,
    async pass(seconds: number) {
      await time.increaseTime({ seconds });
      await time.mine({ blocks: 1 });
    },
    /**
     * Makes the node send transactions as a contract, with a balance that passes the node's check before
     * fees.
     */
    async impersonate(owner: Hex) {
      await time.impersonateAccount({ address: owner });
      await time.setBalance({ address: owner, value: 10n ** 20n });
    },
    close: () => chain.close(),
  };
}

export type EscrowChain = Awaited<ReturnType<typeof escrowChain>>;

/** Returns a call of the escrow by name and arguments. */
export const escrowCall = (functionName: string, ...args: readonly unknown[]): EscrowCall =>
  // The encoder checks name and arguments again.
  ({ abi: escrowAbi, functionName, args }) as unknown as EscrowCall;

export const openCall = (
  { payer, amount, nonce, deadline }: Authorization,
  signature: Hex,
): EscrowCall => escrowCall('open', payer, amount, nonce, deadline, signature);
