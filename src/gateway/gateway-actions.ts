import type { Ai } from '../ai/ai.js';
import type { ChainNode } from '../chain/chain-node.js';
import { NotFoundError } from '../errors.js';
import { aiChat } from './ai-chat.js';
import { chainTransfers } from './chain-transfers.js';
import type { GatewayAction } from './gateway-action.js';
import { summarizerActions } from './summarizer.js';

interface ActionParts {
  readonly ai: Pick<Ai, 'completions' | 'router'>;
  readonly chain: Pick<ChainNode, 'receipt'>;
  /** Where the web summarizer is; undefined where it does not run. */
  readonly summarizerUrl: string | undefined;
}

/** All that the gateway sells. */
export const gatewayActions = ({
  ai,
  chain,
  summarizerUrl,
}: ActionParts): readonly GatewayAction[] => [
  chainTransfers(chain),
  aiChat(ai),
  ...(summarizerUrl === undefined ? [] : summarizerActions(summarizerUrl)),
];

/** What is sold under these names. @throws NotFoundError */
export function findAction(
  actions: readonly GatewayAction[],
  plugin: string,
  action: string,
): GatewayAction {
  const ofPlugin = actions.filter((each) => each.plugin === plugin);
  if (ofPlugin.length === 0) throw new NotFoundError('Unknown plugin');
  const found = ofPlugin.find((each) => each.action === action);
  if (!found) throw new NotFoundError('Unknown action');
  return found;
}
