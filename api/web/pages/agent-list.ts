import type { ListedAgent } from '../../../src/agents/agents/agents.js';
import { webStatus } from '../../../src/agents/agents/web-status.js';
import { html, type Html } from '../../../src/lib/html.js';
import { form } from './forms.js';

export interface AgentList {
  readonly agents: readonly ListedAgent[];
  /** US dollars of this month by the agent's id; none for an agent without calls. */
  readonly costs: ReadonlyMap<string, number>;
  /** True if agents have addresses. */
  readonly isServed: boolean;
}

/** Renders the user's agents on the dashboard. */
export function agentList({ agents, costs, isServed }: AgentList): Html {
  if (agents.length === 0) return html`<p>You have no agents yet.</p>`;
  const items = agents.map(
    ({ id, name, status }) =>
      html`<li>
        <p>
          <strong>${name}</strong>: ${webStatus(status)}; $${(costs.get(id) ?? 0).toFixed(2)} this
          month
        </p>
        ${
          isServed && status === 'active'
            ? form({
                id: `open-${id}`,
                endpoint: ['POST', `/api/agents/${id}/open`],
                follows: 'url',
                button: 'Open',
                about: `Open ${name}`,
              })
            : undefined
        }
      </li>`,
  );
  return html`<ul class="things">
    ${items}
  </ul>`;
}
