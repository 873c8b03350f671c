import type { CurrentSubscription } from '../../../src/accounts/accounts/subscriptions.js';
import { PROVIDER_NAMES } from '../../../src/ai/completion/provider-names.js';
import { html, type Html, type HtmlPart } from '../../../src/lib/html.js';
import type { Balance } from '../../../src/money/ledger/ledger.js';
import { CREDIT_PRICES } from '../../../src/types/credit-prices.js';
import { formatAmount } from '../../../src/types/money.js';
import { form } from './forms.js';
import { formatTime } from './format-time.js';
import { successLocation } from './messages.js';

const BILLING = '/api/billing';

export interface BillingFacts {
  readonly subscription: CurrentSubscription | undefined;
  readonly credits: Balance;
  /** AI providers that the user has given a key of. */
  readonly ownKeys: readonly string[];
}

/** Renders plan, credits and own provider keys on the dashboard. @param sellsCredits true if credits are on sale */
export function billingSection(
  { credits, ownKeys, subscription }: BillingFacts,
  sellsCredits: boolean,
): Html {
  return html`<dl>
      <dt>Plan</dt>
      <dd>${describePlan(subscription)}</dd>
      <dt>Credits</dt>
      <dd>
        ${dollars(credits.balance)}${credits.held > 0n && `, ${dollars(credits.held)} of it held`}
        ${sellsCredits ? creditLinks : undefined}
      </dd>
    </dl>
    ${keysOfProviders(ownKeys)}`;
}

const creditLinks = Object.entries(CREDIT_PRICES).map(
  ([price, cents]) => html`<a href="/api/payproc/credits?price=${price}">Buy $${cents / 100}</a> `,
);

function describePlan(subscription: CurrentSubscription | undefined): HtmlPart {
  if (subscription === undefined) return 'none';
  const { holds, periodEnd, plan, status } = subscription;
  if (!holds) return html`none; ${plan} has ended`;
  if (status === 'past_due') return html`${plan}, not paid for`;
  return html`${plan}${periodEnd && html`, until ${formatTime(periodEnd)}`}`;
}

/** Whole cents, rounded down. */
const dollars = (units: bigint): string => `$${formatAmount(units).slice(0, -4)}`;

function keysOfProviders(providers: readonly string[]): Html {
  const items = providers.map(
    (provider) =>
      html`<li>
        <p><strong>${provider}</strong>: your own key</p>
        ${form({
          id: `own-key-${provider}`,
          endpoint: ['POST', BILLING],
          sends: { action: 'disable-byok', provider },
          successLocation: successLocation('/dashboard', 'own-key-deleted'),
          button: 'Delete',
          about: `Delete your key of ${provider}`,
          dangerous: true,
        })}
      </li>`,
  );
  return html`<p>
      By your own key of an AI provider you pay that provider yourself: such calls cost nothing
      here, and count against no quota.
    </p>
    ${
      items.length > 0
        ? html`<ul class="things">
            ${items}
          </ul>`
        : undefined
    }
    ${form({
      id: 'own-key',
      endpoint: ['POST', BILLING],
      sends: { action: 'enable-byok' },
      successLocation: successLocation('/dashboard', 'own-key-stored'),
      fields: [
        { label: 'AI provider', name: 'provider', autocomplete: 'off', options: PROVIDER_NAMES },
        {
          label: 'Your key',
          name: 'apiKey',
          type: 'password',
          autocomplete: 'off',
          maxLength: 500,
        },
      ],
      button: 'Use this key',
    })}`;
}
