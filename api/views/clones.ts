import * as z from 'zod';
import { webStatus } from '../../src/agents/agents/web-status.js';
import { agentName } from '../../src/agents/model/agent-config.js';
import type { Cloned, Clones } from '../../src/agents/clones/clones.js';
import { CLONE_CURRENCY, CLONE_PRICE, SPECIALIZATIONS } from '../../src/types/clone-terms.js';
import { fieldMessage } from '../../src/lib/field-name.js';
import { shownAddress } from '../../src/money/chain/address.js';
import { PATH_USD } from '../../src/money/chain/tempo.js';
import { amountText, DECIMALS, formatAmount, formattedAmount } from '../../src/types/money.js';
import type { ChainSettings } from '../../src/money/chain/settings.js';
import { agentStatus } from './backend-agents.js';
import { answeredAddress, chainAddress } from './chain-address.js';
import { agentStatus as webAgentStatus } from './web-agents.js';

/** Upper bound; no real lineage is longer. */
const MAX_GENERATION = 1_000_000;

export const cloneBody = z
  .object({
    parentAgentId: z.string().min(1).max(64),
    name: agentName,
    specialization: z.enum(SPECIALIZATIONS).default('general'),
    generation: z
      .number()
      .int()
      .min(1)
      .max(MAX_GENERATION)
      .default(1)
      .describe("Generation of the parent; the clone's is one higher"),
    paymentProof: z.object({
      transactionHash: z
        .string()
        .regex(/^0x[\da-fA-F]{64}$/, fieldMessage('must be 0x and 64 hex digits')),
      amount: amountText
        .refine(
          (units) => units >= CLONE_PRICE,
          fieldMessage(`must be at least ${formatAmount(CLONE_PRICE)}`),
        )
        .meta({ description: 'Amount paid, in pathUSD' }),
      currency: z.literal(CLONE_CURRENCY),
      chainId: z.int().int(),
      from: chainAddress,
      to: chainAddress,
      timestamp: z.number().min(0).describe('Approximate time of the payment, in Unix seconds'),
      signature: z
        .string()
        .regex(/^0x(?:[\da-fA-F]{2}){1,4096}$/, fieldMessage('must be hex'))
        .optional()
        .describe('Signature by `from`, required unless `from` is a linked wallet'),
    }),
  })
  .meta({ id: 'CloneOrder' });

export const cloneAnswer = z
  .strictObject({
    success: z.literal(true),
    clone: z.strictObject({
      id: z.string(),
      name: z.string(),
      parentAgentId: z.string(),
      generation: z.int(),
      specialization: z.enum(SPECIALIZATIONS),
      status: agentStatus,
      createdAt: z.iso.datetime(),
    }),
  })
  .meta({ id: 'Clone' });

/** The same answer in the terms of the web API. */
export const webCloneAnswer = cloneAnswer.extend({
  clone: cloneAnswer.shape.clone.extend({ status: webAgentStatus }),
});

export const presentWebClone = (
  answer: z.output<typeof cloneAnswer>,
): z.input<typeof webCloneAnswer> => ({
  ...answer,
  clone: { ...answer.clone, status: webStatus(answer.clone.status) },
});

export const presentClone = ({ agent, clone }: Cloned) => ({
  success: true as const,
  clone: {
    id: agent.id,
    name: agent.name,
    parentAgentId: clone.parentAgentId,
    generation: agent.generation,
    specialization: clone.specialization,
    status: agent.status,
    createdAt: agent.createdAt.toISOString(),
  },
});

/** The terms that a client needs to pay for a clone. */
export const cloneTerms = z
  .strictObject({
    status: z.literal('ok'),
    chainId: z.int(),
    currency: z.literal(CLONE_CURRENCY),
    token: answeredAddress,
    decimals: z.int(),
    treasury: answeredAddress
      .nullable()
      .describe('Address to pay; null if clones cannot be paid for'),
    price: formattedAmount,
    confirmations: z.int().describe('Blocks until a payment is final, including its own block'),
    chain: z.enum(['available', 'unavailable']),
  })
  .meta({ id: 'CloneTerms' });

export async function presentTerms(
  clones: Clones,
  { chainId, confirmations, treasury }: ChainSettings,
): Promise<z.infer<typeof cloneTerms>> {
  return {
    status: 'ok',
    chainId,
    currency: CLONE_CURRENCY,
    token: shownAddress(PATH_USD),
    decimals: DECIMALS,
    treasury: treasury === undefined ? null : shownAddress(treasury),
    price: formatAmount(CLONE_PRICE),
    confirmations,
    chain: (await clones.isPayable()) ? 'available' : 'unavailable',
  };
}
