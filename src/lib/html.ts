/** A piece of a page, whose every part from elsewhere is escaped. */
export class Html {
  constructor(readonly text: string) {}
}

/** What a page may be put together of; what is not there is left out. */
export type HtmlPart = Html | string | number | false | null | undefined | readonly HtmlPart[];

/** Makes a piece of a page: what is put into the template is text, unless it is such a piece itself. */
export function html(template: readonly string[], ...parts: readonly HtmlPart[]): Html {
  return new Html(template.reduce((text, next, index) => text + textOf(parts[index - 1]) + next));
}

function textOf(part: HtmlPart): string {
  if (part === undefined || part === null || part === false) return '';
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(textOf).join('');
  // Quotes too, because it may stand in an attribute.
  return String(part).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}

/** An element's attributes, by names of ours: true has no value, and false is left out. */
export function attributes(
  given: Readonly<Record<string, string | number | boolean | undefined>>,
): Html {
  const written = Object.entries(given).map(([name, value]) => {
    if (value === undefined || value === false) return '';
    return value === true ? name : `${name}="${textOf(value)}"`;
  });
  return new Html(written.filter(Boolean).join(' '));
}
