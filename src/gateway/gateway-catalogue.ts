import type { Ai } from '../ai/routing/ai.js';
import { BadGatewayError, NotFoundError } from '../lib/errors.js';
import { aiChat } from './ai-chat.js';
import type { ChainFor } from '../money/chain/chain-node.js';
import { chainTransfers } from './chain-transfers.js';
import type { GatewayAction } from './gateway-action.js';
import { summarizerActions, type SummarizerPlace } from './summarizer.js';
import { X402, type OfferedActions } from './x402.js';

interface ActionParts {
  readonly ai: Pick<Ai, 'completions' | 'router'>;
  readonly chain: ChainFor<'receipt'>;
  /** Undefined if the summarizer does not run. */
  readonly summarizer: SummarizerPlace | undefined;
}

export const builtInActions = ({
  ai,
  chain,
  summarizer,
}: ActionParts): readonly GatewayAction[] => [
  chainTransfers(chain),
  aiChat(ai),
  ...(summarizer === undefined ? [] : summarizerActions(summarizer)),
];

export class GatewayCatalogue {
  readonly #own: readonly GatewayAction[];
  readonly #x402: OfferedActions | undefined;

  /** `x402` is undefined if resale is disabled. */
  constructor(own: readonly GatewayAction[], x402?: OfferedActions) {
    this.#own = own;
    this.#x402 = x402;
  }

  async list(): Promise<readonly GatewayAction[]> {
    return [...this.#own, ...((await this.#x402?.()) ?? [])];
  }

  /**
   * Finds an action. @throws NotFoundError; BadGatewayError while the list of resold actions is unavailable.
   */
  async find(plugin: string, action: string): Promise<GatewayAction> {
    const found = (await this.#ofPlugin(plugin, action)).find((each) => each.action === action);
    if (!found) throw new NotFoundError('Unknown action');
    return found;
  }

  async #ofPlugin(plugin: string, action: string): Promise<readonly GatewayAction[]> {
    if (plugin === X402 && this.#x402) {
      const others = await this.#x402();
      if (others) return others;
      throw new BadGatewayError(
        `${plugin} ${action} cannot be bought now because its price is unavailable: retry later`,
      );
    }
    const own = this.#own.filter((each) => each.plugin === plugin);
    if (own.length === 0) throw new NotFoundError('Unknown plugin');
    return own;
  }
}
