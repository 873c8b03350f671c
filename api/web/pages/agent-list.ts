import type { ListedAgent } from '../../../src/agents/agents/agents.js';
import { webStatus } from '../../../src/agents/agents/web-status.js';
import { html, type Html } from '../../../src/lib/html.js';
import { form } from './forms.js';

/** Renders the user's agents on the dashboard. @param isServed true if agents have addresses. */
export function agentList(agents: readonly ListedAgent[], isServed: boolean): Html {
  if (agents.length === 0) return html`<p>You have no agents yet.</p>`;
  const items = agents.map(
    ({ id, name, status }) =>
      html`<li>
        <p><strong>${name}</strong>: ${webStatus(status)}</p>
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
