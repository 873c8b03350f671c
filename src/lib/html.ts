/** A piece of HTML in which all inserted text is escaped. */
export class Html {
  constructor(readonly text: string) {}
}

/** A value that can be inserted into a page; empty values are left out. */
export type HtmlPart = Html | string | number | false | null | undefined | readonly HtmlPart[];

/** Builds HTML from a template and escapes every inserted value that is not HTML already. */
export function html(template: readonly string[], ...parts: readonly HtmlPart[]): Html {
  return new Html(template.reduce((text, next, index) => text + textOf(parts[index - 1]) + next));
}

function textOf(part: HtmlPart): string {
  if (part === undefined || part === null || part === false) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(textOf).join('');
  // Quotes are escaped, too, because the text may be in an attribute.
  return String(part).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** Renders attributes with trusted names: true renders an attribute without a value, false none. */
export function attributes(
  given: Readonly<Record<string, string | number | boolean | undefined>>,
): Html {
  const written = Object.entries(given).map(([name, value]) => {
    if (value === undefined || value === false) return '';
    return value === true ? name : `${name}="${textOf(value)}"`;
  });
  return new Html(written.filter(Boolean).join(' '));
}
