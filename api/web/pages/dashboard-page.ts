import type { ApiKey } from '../../../src/accounts/accounts/api-keys.js';
import { MAX_API_KEY_NAME } from '../../../src/accounts/accounts/api-keys.js';
import type { ListedSession } from '../../../src/accounts/accounts/sessions.js';
import type { ListedIdentity } from '../../../src/accounts/accounts/identities.js';
import { DEFAULT_KEY_SCOPES, KEY_SCOPES } from '../../../src/types/key-scopes.js';
import type { Profile } from '../../../src/accounts/accounts/profile.js';
import { MAX_NAME_LENGTH } from '../../../src/accounts/accounts/register.js';
import { html, type Html, type HtmlPart } from '../../../src/lib/html.js';
import type { HtmlReply } from '../../http/reply.js';
import { agentList, type AgentList } from './agent-list.js';
import { billingSection, type BillingFacts } from './billing-section.js';
import { form, keepKeys, newPassword, type Field } from './forms.js';
import { page } from './layout.js';
import { formatTime } from './format-time.js';
import { doneNotice, successLocation } from './messages.js';
import { linkedAccounts, type SignInMethods } from './sign-in-methods.js';

const SETTINGS = '/api/settings';

export interface Dashboard {
  readonly profile: Profile;
  /** True if credits are on sale. */
  readonly sellsCredits: boolean;
  readonly isAdmin: boolean;
  readonly billing: BillingFacts;
  /** The first page of the user's agents. */
  readonly agentList: AgentList;
  /** True if mail can be sent. */
  readonly mail: boolean;
  readonly methods: SignInMethods;
  readonly identities: readonly ListedIdentity[];
  readonly sessions: readonly ListedSession[];
  readonly current: string;
  readonly keys: readonly ApiKey[];
  readonly done?: string | undefined;
}

/** Renders `/dashboard`, the page of a user's own account. */
export function dashboardPage(shown: Dashboard): HtmlReply<200> {
  const { current, done, keys, profile, sessions } = shown;
  return page({
    title: 'Your account',
    notice: doneNotice(done),
    content: html`
      ${section('Agents', agentList(shown.agentList))} ${section('Profile', profileSection(shown))}
      ${section('Plan and credits', billingSection(shown.billing, shown.sellsCredits))}
      ${section('Password', passwordChange(profile))}
      ${section('Linked accounts', linkedAccounts(shown.identities, shown.methods))}
      ${section('Sessions', sessionList(sessions, current))} ${section('API keys', keyList(keys))}
      ${section(
        'Sign out',
        form({
          id: 'sign-out',
          endpoint: ['POST', '/api/auth/signout'],
          successLocation: successLocation('/login', 'signed-out'),
          button: 'Sign out',
        }),
      )}
      ${section('Your data', leaving(profile))}
    `,
  });
}

function section(title: string, content: HtmlPart): Html {
  const id = `about-${title.toLowerCase().replaceAll(' ', '-')}`;
  return html`<section aria-labelledby="${id}">
    <h2 id="${id}">${title}</h2>
    ${content}
  </section>`;
}

function profileSection({ isAdmin, mail, profile }: Dashboard): Html {
  const { createdAt, email, emailVerified, name, pendingEmail, referralCode } = profile;
  const facts: readonly (readonly [string, HtmlPart])[] = [
    ['Name', name],
    ['Email', html`${email} ${emailVerified ? '(confirmed)' : '(not confirmed)'}`],
    ['Email to be confirmed', pendingEmail],
    ['Referral code', referralCode],
    ['Since', formatTime(createdAt)],
    ['Rights', isAdmin ? 'admin' : undefined],
  ];
  return html`<dl>
      ${facts
        .filter(([, value]) => value !== undefined && value !== null)
        .map(
          ([term, value]) =>
            html`<dt>${term}</dt>
              <dd>${value}</dd>`,
        )}
    </dl>
    ${mail && (!emailVerified || pendingEmail !== null) ? resend() : undefined}
    ${form({
      id: 'name',
      endpoint: ['PATCH', SETTINGS],
      successLocation: successLocation('/dashboard', 'profile-changed'),
      fields: [
        { label: 'New name', name: 'name', autocomplete: 'name', maxLength: MAX_NAME_LENGTH },
      ],
      button: 'Change the name',
    })}
    ${mail ? emailChange() : undefined}`;
}

const resend = () =>
  form({
    id: 'resend',
    endpoint: ['POST', '/api/auth/verify-email/resend'],
    successText: 'A link was sent to you. It is valid for a day.',
    button: 'Send the confirmation link again',
  });

const emailChange = () =>
  form({
    id: 'email',
    endpoint: ['PATCH', SETTINGS],
    successText: 'A link was sent to the new address. Open it there to confirm the address.',
    fields: [
      { label: 'New email', name: 'email', type: 'email', autocomplete: 'email', maxLength: 254 },
    ],
    button: 'Change the email',
  });

function passwordChange({ email, hasPassword }: Profile): Html {
  const current: Field = {
    label: 'Current password',
    name: 'currentPassword',
    type: 'password',
    autocomplete: 'current-password',
  };
  const hint =
    'At least 8 characters. All other sessions end, and all API keys unless you keep them.';
  return form(
    {
      id: 'password',
      endpoint: ['POST', `${SETTINGS}/password`],
      successLocation: successLocation('/dashboard', 'password-changed'),
      fields: [...(hasPassword ? [current] : []), newPassword('newPassword', hint)],
      choices: [keepKeys],
      button: hasPassword ? 'Change the password' : 'Set a password',
    },
    // Password managers store the password with this address.
    html`<input type="email" autocomplete="username" value="${email}" hidden disabled />`,
  );
}

function leaving({ email }: Profile): Html {
  return html`${form({
    id: 'export',
    endpoint: ['GET', `${SETTINGS}/export`],
    saves: 'account.json',
    button: 'Download your data',
  })}
  ${form({
    id: 'delete',
    endpoint: ['DELETE', SETTINGS],
    successLocation: successLocation('/login', 'deleting'),
    fields: [
      {
        label: 'Your email',
        name: 'confirm',
        autocomplete: 'off',
        hint: `To permanently delete your account and all of your agents, enter ${email}`,
      },
    ],
    button: 'Delete the account',
    dangerous: true,
  })}`;
}

const METHODS: Readonly<Record<ListedSession['method'], string>> = {
  password: 'password',
  google: 'Google',
  github: 'GitHub',
  wallet: 'wallet',
};

function sessionList(sessions: readonly ListedSession[], current: string): Html {
  const items = sessions.map((session) => {
    const isCurrent = session.id === current;
    const begun = formatTime(session.createdAt);
    return html`<li>
      <p>
        <strong>${isCurrent ? 'This browser' : (session.userAgent ?? 'A program')}</strong><br />
        Signed in by ${METHODS[session.method]} on
        ${begun}${session.address && ` from ${session.address}`}; last used on
        ${formatTime(session.lastSeenAt)}
      </p>
      ${
        isCurrent
          ? undefined
          : form({
              id: `session-${session.id}`,
              endpoint: ['DELETE', `/api/auth/sessions/${session.id}`],
              successLocation: successLocation('/dashboard', 'session-ended'),
              button: 'End',
              about: `End the session of ${session.createdAt.toISOString()}`,
            })
      }
    </li>`;
  });
  return html`<ul class="things">
      ${items}
    </ul>
    ${
      sessions.length > 1
        ? form({
            id: 'sessions',
            endpoint: ['DELETE', '/api/auth/sessions'],
            successLocation: successLocation('/dashboard', 'sessions-ended'),
            button: 'Sign out everywhere else',
          })
        : undefined
    }`;
}

function keyList(keys: readonly ApiKey[]): Html {
  const items = keys.map(
    ({ createdAt, id, keyPreview, lastUsed, name, scopes }) =>
      html`<li>
        <p>
          <strong>${name}</strong> <code>${keyPreview}</code>: ${scopes.join(', ')}<br />
          Created on ${formatTime(createdAt)};
          ${lastUsed ? html`last used on ${formatTime(lastUsed)}` : 'not used yet'}
        </p>
        ${form({
          id: `key-${id}`,
          endpoint: ['DELETE', `/api/keys/${id}`],
          successLocation: successLocation('/dashboard', 'key-deleted'),
          button: 'Delete',
          about: `Delete the key ${name}`,
          dangerous: true,
        })}
      </li>`,
  );
  return html`<p>
      Programs call the API with a key. The scopes of a key limit what it can do;
      <code>money</code> allows payments from the wallets that the platform keeps for you.
    </p>
    ${
      keys.length > 0
        ? html`<ul class="things">
            ${items}
          </ul>`
        : undefined
    }
    ${form({
      id: 'new-key',
      endpoint: ['POST', '/api/keys'],
      successText: 'This is the key. Store it now: it is not shown again.',
      shows: 'key',
      fields: [
        {
          label: 'Name of a new key',
          name: 'name',
          autocomplete: 'off',
          maxLength: MAX_API_KEY_NAME,
        },
      ],
      choices: KEY_SCOPES.map((scope) => ({
        label: scope,
        name: 'scopes',
        value: scope,
        checked: DEFAULT_KEY_SCOPES.includes(scope),
      })),
      button: 'Create a key',
    })}`;
}
