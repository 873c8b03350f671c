import { attributes, html, type Html, type HtmlPart } from '../../../src/lib/html.js';

/** A form that the pages' script sends as JSON. */
export interface Form {
  /** Unique on its page; the ids of its fields begin with it. */
  readonly id: string;
  /** Method and path of the endpoint. */
  readonly sends: readonly ['GET' | 'POST' | 'PATCH' | 'DELETE', string];
  /** Where success leads to; `here` is the same page again. */
  readonly then?: string;
  /** What is said when it succeeds and leads nowhere. */
  readonly said?: string;
  /** The field of the answer that is shown, for this once. */
  readonly shows?: string;
  /** The field of the answer that says where to go. */
  readonly follows?: string;
  /** The name of a file that the answer is kept as. */
  readonly saves?: string;
  /** It sends what the browser's wallet signs, for this chain; without a wallet it is not there. */
  readonly chainId?: number;
  /** Whether it sends the token of the page's address as well. */
  readonly token?: true;
  /** Of one that signs in: to be refused does not mean that the session is over. */
  readonly signsIn?: true;
  readonly fields?: readonly Field[];
  readonly button: string;
  /** What the button is for, where others on the page say the same. */
  readonly about?: string;
  readonly dangerous?: boolean;
}

/** A field of a form, with its label. */
export interface Field {
  readonly label: string;
  /** As the endpoint calls it. */
  readonly name: string;
  readonly type?: 'email' | 'password';
  /** What browsers and password managers fill in. */
  readonly autocomplete: string;
  readonly value?: string;
  readonly hint?: string;
  readonly optional?: true;
  readonly minLength?: number;
  readonly maxLength?: number;
}

/**
 * `method="post"`, so that a browser in which the script does not run never puts a password into an
 * address; the pages' policy keeps it from sending the form at all.
 *
 * @param extra what stands before the fields.
 */
export function form(given: Form, extra?: HtmlPart): Html {
  const { about, button, dangerous, fields = [], id, sends } = given;
  const [method, action] = sends;
  const how = {
    ...{ 'data-then': given.then, 'data-said': given.said, 'data-shows': given.shows },
    ...{ 'data-follows': given.follows, 'data-saves': given.saves },
    ...{ 'data-token': given.token, 'data-signs-in': given.signsIn },
    ...{ 'data-chain-id': given.chainId, hidden: given.chainId !== undefined },
  };
  return html`<form ${attributes({ id, method: 'post', action, 'data-sends': method, ...how })}>
    ${extra} ${fields.map((each) => field(id, each))}
    <button ${attributes({ 'aria-label': about, class: dangerous && 'danger' })}>${button}</button>
    <p class="outcome" role="status" tabindex="-1"></p>
  </form>`;
}

function field(formId: string, given: Field): Html {
  const { autocomplete, hint, label, maxLength, minLength, name, optional, type, value } = given;
  const id = `${formId}-${name}`;
  const hintId = hint === undefined ? undefined : `${id}-hint`;
  const input = {
    ...{ id, name, type: type ?? 'text', autocomplete, value },
    ...{ minlength: minLength, maxlength: maxLength, 'aria-describedby': hintId },
    required: !optional,
  };
  return html`<p>
    <label for="${id}">${label}${optional && ' (optional)'}</label>
    <input ${attributes(input)} />
    ${hintId && html`<small id="${hintId}">${hint}</small>`}
  </p>`;
}

/** The field for a password that somebody chooses. @param name as the endpoint calls it. */
export const newPassword = (name: string, hint = 'At least 8 characters.'): Field => ({
  ...{ label: 'New password', name, type: 'password', autocomplete: 'new-password' },
  ...{ minLength: 8, maxLength: 1024, hint },
});
