import type { CurrentSubscription } from '../../../src/accounts/accounts/subscriptions.js';
import { PROVIDER_NAMES } from '../../../src/ai/completion/provider-names.js';
import { html, type Html, type HtmlPart } from '../../../src/lib/html.js';
import type { Balance } from '../../../src/money/ledger/ledger.js';
import { CREDIT_PRICES } from '../../../src/types/credit-prices.js';
import { formatAmount } from '../../../src/types/money.js';
import {
  PLAN_LIMITS,
  PLANS,
  STORAGE_LIMITS,
  STORAGE_PLANS,
  type StoragePlan,
} from '../../../src/types/plans.js';
import { form } from './forms.js';
import { formatTime } from './format-time.js';
import { successLocation } from './messages.js';

const BILLING = '/api/billing';

export interface BillingFacts {
  readonly subscription: CurrentSubscription | undefined;
  readonly storage: CurrentSubscription | undefined;
  readonly credits: Balance;
  /** AI providers that the user has given a key of. */
  readonly ownKeys: readonly string[];
}

/** Renders plan, storage, credits and own provider keys on the dashboard. @param sells true if they are on sale */
export function billingSection(
  { credits, ownKeys, storage, subscription }: BillingFacts,
  sells: boolean,
): Html {
  return html`<dl>
      <dt>Plan</dt>
      <dd>${describePlan(subscription)} ${sells ? planLinks(subscription) : undefined}</dd>
      <dt>Storage</dt>
      <dd>${describePlan(storage)}</dd>
      <dt>Credits</dt>
      <dd>
        ${dollars(credits.balance)}${credits.held > 0n && `, ${dollars(credits.held)} of it held`}
        ${sells ? creditLinks : undefined}
      </dd>
    </dl>
    ${sells && subscription?.holds ? storageForm(storage) : undefined} ${keysOfProviders(ownKeys)}`;
}

/** Links to the processor's pages: those that sell plans, or the one that manages a plan that was bought. */
function planLinks(subscription: CurrentSubscription | undefined): Html[] {
  const isBought = subscription?.holds === true && subscription.source === 'processor';
  return PLANS.map((plan) => {
    const price = `£${PLAN_LIMITS[plan].monthlyPriceGbp} a month`;
    const isManaged = isBought && subscription.plan === plan;
    const text = isManaged
      ? `Pay for or cancel ${plan}`
      : `${isBought ? 'Change to' : 'Buy'} ${plan}, ${price}`;
    return html`<a href="/api/payproc/checkout?plan=${plan}">${text}</a> `;
  });
}

function storageForm(storage: CurrentSubscription | undefined): Html {
  return html`<p>
      Storage is added to the memory of each of your agents. Choose the storage that you have to pay
      for or cancel it.
    </p>
    ${form({
      id: 'storage',
      endpoint: ['POST', '/api/payproc/storage-upgrade'],
      follows: 'url',
      fields: [{ label: 'Storage', name: 'plan', autocomplete: 'off', options: STORAGE_PLANS }],
      button: storage?.holds === true ? 'Change storage' : 'Buy storage',
    })}
    <p>${STORAGE_PLANS.map(describeStorage).join(', ')}</p>`;
}

const describeStorage = (plan: StoragePlan): string =>
  `${plan}: £${STORAGE_LIMITS[plan].monthlyPriceGbp} a month`;

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
