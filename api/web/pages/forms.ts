import { attributes, html, type Html, type HtmlPart } from '../../../src/lib/html.js';

/** A form that the pages' script submits as JSON. */
export interface Form {
  /** Id, unique on the page; the ids of its fields begin with it. */
  readonly id: string;
  /** Method and path of the endpoint to call. */
  readonly endpoint: readonly ['GET' | 'POST' | 'PATCH' | 'DELETE', string];
  /** The page to open on success; `here` reloads the current page. */
  readonly successLocation?: string;
  /** The message on success, if no page is opened. */
  readonly successText?: string;
  /** The field of the answer to display once. */
  readonly shows?: string;
  /** The field of the answer that holds the URL to open. */
  readonly follows?: string;
  /** The file name for saving the answer. */
  readonly saves?: string;
  /** The chain of the wallet signature that the form sends; the form is hidden without a wallet. */
  readonly chainId?: number;
  /** True if the form also sends the token in the page's URL. */
  readonly token?: true;
  /** True for sign-in forms: a 401 does not mean that the session has expired. */
  readonly signsIn?: true;
  /** Fields that the form sends unseen. */
  readonly sends?: Readonly<Record<string, string>>;
  readonly fields?: readonly Field[];
  readonly choices?: readonly Choice[];
  readonly button: string;
  /** The button's purpose, if several buttons on the page have the same label. */
  readonly about?: string;
  readonly dangerous?: boolean;
}

/** A field of a form, with its label. */
export interface Field {
  readonly label: string;
  /** The endpoint's name for the field. */
  readonly name: string;
  readonly type?: 'email' | 'password';
  readonly autocomplete: string;
  readonly value?: string;
  readonly hint?: string;
  readonly optional?: true;
  readonly minLength?: number;
  readonly maxLength?: number;
  /** The values to choose from, in place of a text. */
  readonly options?: readonly string[];
}

/** A checkbox: with a value one of a list, otherwise a boolean. */
export interface Choice {
  readonly label: string;
  /** The endpoint's name for the field. */
  readonly name: string;
  readonly value?: string;
  readonly checked?: boolean;
}

/** Renders a form. `method="post"` keeps passwords out of the URL if the script does not run. */
export function form(given: Form, extra?: HtmlPart): Html {
  const { about, button, choices = [], dangerous, fields = [], id, sends = {} } = given;
  const [method, action] = given.endpoint;
  const how = {
    'data-then': given.successLocation,
    'data-said': given.successText,
    'data-shows': given.shows,
    'data-follows': given.follows,
    'data-saves': given.saves,
    'data-token': given.token,
    'data-signs-in': given.signsIn,
    'data-chain-id': given.chainId,
    hidden: given.chainId !== undefined,
  };
  return html`<form ${attributes({ id, method: 'post', action, 'data-sends': method, ...how })}>
    ${extra} ${Object.entries(sends).map(unseen)} ${fields.map((each) => field(id, each))}
    ${choices.map(choice)}
    <button ${attributes({ 'aria-label': about, class: dangerous && 'danger' })}>${button}</button>
    <p class="outcome" role="status" tabindex="-1"></p>
  </form>`;
}

const unseen = ([name, value]: [string, string]): Html =>
  html`<input type="hidden" name="${name}" value="${value}" />`;

const choice = ({ checked, label, name, value }: Choice): Html => {
  const box = { type: 'checkbox', name, value, checked, 'data-list': value !== undefined };
  return html`<p>
    <label><input ${attributes(box)} /> ${label}</label>
  </p>`;
};

function field(formId: string, given: Field): Html {
  const { autocomplete, hint, label, maxLength, minLength, name, optional, options, type, value } =
    given;
  const id = `${formId}-${name}`;
  const hintId = hint === undefined ? undefined : `${id}-hint`;
  const input = {
    id,
    name,
    type: type ?? 'text',
    autocomplete,
    value,
    minlength: minLength,
    maxlength: maxLength,
    'aria-describedby': hintId,
    required: !optional,
  };
  return html`<p>
    <label for="${id}">${label}${optional && ' (optional)'}</label>
    ${options ? select({ id, name }, options) : html`<input ${attributes(input)} />`}
    ${hintId && html`<small id="${hintId}">${hint}</small>`}
  </p>`;
}

const select = (
  named: { readonly id: string; readonly name: string },
  options: readonly string[],
) =>
  html`<select ${attributes({ ...named })}>
    ${options.map((option) => html`<option>${option}</option>`)}
  </select>`;

/** The choice of requests that set a password. */
export const keepKeys: Choice = { label: 'Keep my API keys', name: 'keepKeys' };

/** The field for choosing a new password. @param name the endpoint's name for the field. */
export const newPassword = (name: string, hint = 'At least 8 characters.'): Field => ({
  label: 'New password',
  name,
  type: 'password',
  autocomplete: 'new-password',
  minLength: 8,
  maxLength: 1024,
  hint,
});
