import { formatEther, formatUnits, type Hex } from 'viem';
import { reasonOf } from '../lib/reason-of.js';
import { ChainAwayError, ChainNode } from '../money/chain/chain-node.js';
import { chainSettings, type ChainSettings } from '../money/chain/settings.js';
import { PATH_USD } from '../money/chain/tempo.js';
import { isTempo } from '../money/payments/chains.js';
import { PaymentNode } from '../money/payments/payment-node.js';
import { checkOf, failure, ok, warning, type Check, type Finding } from './check.js';

/** Gas of a large payment, which the operator's wallet should be able to pay for. */
const GAS = 2_000_000n;

const PATH_USD_DECIMALS = 6;

/** Checks the nodes of both chains, the contracts and the money for fees. */
export const chainCheck: Check = checkOf('chain', { chain: chainSettings }, async ({ chain }) => {
  const findings = await Promise.all([paymentChain(chain), usdcChain(chain)]);
  return findings.flat();
});

async function paymentChain(chain: ChainSettings): Promise<Finding[]> {
  const { chainId, confirmations, escrow, operator, rpcUrl } = chain;
  if (rpcUrl === undefined) {
    return [warning('No payments are made: set CHAIN_RPC_URL to a node of the chain.')];
  }
  const node = new ChainNode({ chainId, url: rpcUrl });
  const remedy = 'correct CHAIN_RPC_URL or CHAIN_TESTNET';
  return withNode(`The node of chain ${chainId}`, remedy, async () => {
    const block = await node.blockNumber();
    return [
      ok(
        `The node of chain ${chainId} answers, at block ${block}; a payment is final after ${blocks(confirmations)}.`,
      ),
      ...(await contractFindings(node, 'ESCROW_ADDRESS', escrow)),
      operator === undefined
        ? warning('The platform pays nothing: set OPERATOR_PRIVATE_KEY for the payments process.')
        : await operatorFinding(node, operator.address),
    ];
  });
}

const blocks = (count: number): string => (count === 1 ? '1 block' : `${count} blocks`);

async function usdcChain({ chainId: ofPayments, usdc }: ChainSettings): Promise<Finding[]> {
  const { address, chainId, rpcUrl } = usdc;
  if (rpcUrl === undefined || address === undefined) return [];
  const node = new ChainNode({ chainId, url: rpcUrl });
  const remedy = 'correct USDC_RPC_URL or USDC_CHAIN_ID';
  return withNode(`The node of chain ${chainId} for USDC`, remedy, async () => {
    const block = await node.blockNumber();
    const contract = await contractFindings(node, 'USDC_ADDRESS', address);
    return chainId === ofPayments
      ? contract
      : [ok(`The node of chain ${chainId} for USDC answers, at block ${block}.`), ...contract];
  });
}

async function withNode(
  name: string,
  remedy: string,
  work: () => Promise<Finding[]>,
): Promise<Finding[]> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ChainAwayError)) throw error;
    const reason = error.cause === undefined ? '' : ` (${reasonOf(error.cause)})`;
    return [failure(`${name} does not answer, or not for this chain${reason}: ${remedy}.`)];
  }
}

async function contractFindings(
  node: ChainNode,
  variable: string,
  address: Hex | undefined,
): Promise<Finding[]> {
  if (address === undefined || (await node.hasCode(address))) return [];
  return [
    failure(
      `${variable} is ${address}, and chain ${node.chainId} has no contract there: correct ${variable}.`,
    ),
  ];
}

async function operatorFinding(node: ChainNode, address: Hex): Promise<Finding> {
  const payments = new PaymentNode(node);
  const [{ base, priority }, balance] = await Promise.all([
    payments.fees(),
    balanceOf(node, address),
  ]);
  const text = `The operator's wallet ${address} has ${balance} for fees`;
  if (await payments.canPay(address, GAS, base * 2n + priority)) return ok(`${text}.`);
  return failure(`${text}, too little for a payment: send it more.`);
}

async function balanceOf(node: ChainNode, address: Hex): Promise<string> {
  if (isTempo(node.chainId)) {
    return `${formatUnits(await node.tokenBalance(PATH_USD, address), PATH_USD_DECIMALS)} pathUSD`;
  }
  return `${formatEther(await node.read((client) => client.getBalance({ address })))} coins`;
}
