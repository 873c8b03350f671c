import { attributes, html, type Html, type HtmlPart } from '../../http/html.js';

/** A form that the pages' script sends as JSON. */
export interface Form {
  /** Unique on its page; the ids of its fields begin with it. */
  readonly id: string;
  /** Method and path of the endpoint. */
  readonly sends: readonly ['POST' | 'PATCH' | 'DELETE', string];
  /** Where success leads to; `here` is the same page again. */
  readonly then?: string;
  /** What is said when it succeeds and leads nowhere. */
  readonly said?: string;
  /** The field of the answer that is shown, for this once. */
  readonly shows?: string;
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
  const { about, button, dangerous, fields = [], id, said, sends, shows, then } = given;
  const [method, action] = sends;
  const answer = { 'data-then': then, 'data-said': said, 'data-shows': shows };
  return html`<form ${attributes({ id, method: 'post', action, 'data-sends': method, ...answer })}>
    ${extra} ${fields.map((each) => field(id, each))}
    <button ${attributes({ 'aria-label': about, class: dangerous ? 'danger' : undefined })}>
      ${button}
    </button>
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
    required: optional ? undefined : (true as const),
  };
  return html`<p>
    <label for="${id}">${label}${optional && ' (optional)'}</label>
    <input ${attributes(input)} />
    ${hintId && html`<small id="${hintId}">${hint}</small>`}
  </p>`;
}
