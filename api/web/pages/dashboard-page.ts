import type { ApiKey } from '../../../src/accounts/api-keys.js';
import { MAX_API_KEY_NAME } from '../../../src/accounts/api-keys.js';
import type { ListedSession } from '../../../src/accounts/sessions.js';
import type { SignedInUser } from '../../../src/accounts/sign-in.js';
import { html, type Html, type HtmlPart } from '../../http/html.js';
import type { HtmlReply } from '../../http/reply.js';
import { form } from './forms.js';
import { page } from './layout.js';
import { doneNotice, thenTo } from './sentences.js';

/** What a dashboard shows of its owner. */
export interface Dashboard {
  readonly user: SignedInUser;
  readonly sessions: readonly ListedSession[];
  /** The session that asks. */
  readonly current: string;
  readonly keys: readonly ApiKey[];
  readonly done?: string | undefined;
}

/** `/dashboard`: an account, for whose it is. */
export function dashboardPage(shown: Dashboard): HtmlReply<200> {
  const { current, done, keys, sessions, user } = shown;
  return page({
    title: 'Your account',
    notice: doneNotice(done),
    content: html`
      ${section('Profile', profile(user))} ${section('Password', passwordChange(user))}
      ${section('Sessions', sessionList(sessions, current))} ${section('API keys', keyList(keys))}
      ${section(
        'Sign out',
        form({
          id: 'sign-out',
          sends: ['POST', '/api/auth/signout'],
          then: thenTo('/login', 'signed-out'),
          button: 'Sign out',
        }),
      )}
    `,
  });
}

function section(title: string, content: HtmlPart): Html {
  const id = title.toLowerCase().replaceAll(' ', '-');
  return html`<section aria-labelledby="${id}">
    <h2 id="${id}">${title}</h2>
    ${content}
  </section>`;
}

function profile({ email, isAdmin, name }: SignedInUser): Html {
  return html`<dl>
    <dt>Name</dt>
    <dd>${name}</dd>
    <dt>Email</dt>
    <dd>${email}</dd>
    ${
      isAdmin
        ? html`<dt>Rights</dt>
            <dd>Admin</dd>`
        : undefined
    }
  </dl>`;
}

function passwordChange({ email }: SignedInUser): Html {
  return form(
    {
      id: 'password',
      sends: ['POST', '/api/settings/password'],
      then: thenTo('/dashboard', 'password-changed'),
      fields: [
        {
          label: 'Current password',
          name: 'currentPassword',
          type: 'password',
          autocomplete: 'current-password',
        },
        {
          label: 'New password',
          name: 'newPassword',
          type: 'password',
          autocomplete: 'new-password',
          minLength: 8,
          hint: 'At least 8 characters. All other sessions end.',
        },
      ],
      button: 'Change the password',
    },
    // For password managers, which keep a password by its account.
    html`<input type="email" autocomplete="username" value="${email}" hidden disabled />`,
  );
}

/** How sessions were signed in, in words. */
const METHODS: Readonly<Record<ListedSession['method'], string>> = {
  password: 'password',
  google: 'Google',
  github: 'GitHub',
  wallet: 'wallet',
};

function sessionList(sessions: readonly ListedSession[], current: string): Html {
  const items = sessions.map((session) => {
    const isCurrent = session.id === current;
    const begun = when(session.createdAt);
    return html`<li>
      <p>
        <strong>${isCurrent ? 'This browser' : (session.userAgent ?? 'A program')}</strong><br />
        By ${METHODS[session.method]} on ${begun}${session.address && ` from ${session.address}`};
        last used on ${when(session.lastSeenAt)}
      </p>
      ${
        isCurrent
          ? undefined
          : form({
              id: `session-${session.id}`,
              sends: ['DELETE', `/api/auth/sessions/${session.id}`],
              then: thenTo('/dashboard', 'session-ended'),
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
            sends: ['DELETE', '/api/auth/sessions'],
            then: thenTo('/dashboard', 'sessions-ended'),
            button: 'Sign out everywhere else',
          })
        : undefined
    }`;
}

function keyList(keys: readonly ApiKey[]): Html {
  const items = keys.map(
    ({ createdAt, id, keyPreview, lastUsed, name }) =>
      html`<li>
        <p>
          <strong>${name}</strong> <code>${keyPreview}</code><br />
          Made on ${when(createdAt)};
          ${lastUsed ? html`last used on ${when(lastUsed)}` : 'not used yet'}
        </p>
        ${form({
          id: `key-${id}`,
          sends: ['DELETE', `/api/keys/${id}`],
          then: thenTo('/dashboard', 'key-deleted'),
          button: 'Delete',
          about: `Delete the key ${name}`,
          dangerous: true,
        })}
      </li>`,
  );
  return html`<p>
      By a key your programs call the API. It can do what you can, save for your account.
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
      sends: ['POST', '/api/keys'],
      said: 'This is the key. Keep it now: it is not shown again.',
      shows: 'key',
      fields: [
        {
          label: 'Name of a new key',
          name: 'name',
          autocomplete: 'off',
          maxLength: MAX_API_KEY_NAME,
        },
      ],
      button: 'Make a key',
    })}`;
}

const DAY_AND_TIME = new Intl.DateTimeFormat('en-GB', {
  ...{ day: 'numeric', month: 'long', year: 'numeric' },
  ...{ hour: '2-digit', minute: '2-digit', timeZone: 'UTC', timeZoneName: 'short' },
});

/** A moment, to the minute, as people read it. */
function when(date: Date): Html {
  return html`<time datetime="${date.toISOString()}">${DAY_AND_TIME.format(date)}</time>`;
}
