import { BadRequestError } from '../lib/errors.js';
import { isObject, tryParseJson } from '../lib/json.js';

/* OpenClaw's `SKILL.md`: fields between two lines of `---`, then instructions in Markdown. */

export const MAX_SKILL_BYTES = 40_000;

const FENCE = '---';
const FIELD = /^([A-Za-z][A-Za-z0-9_-]{0,63}):(?:[ \t](.*))?$/;
/** First characters of values to which YAML assigns a special meaning. */
const SPECIAL = /^[&*!%@`|>#?-]/;
const CONTROL = /[\0-\u0008\u000b\u000c\u000e-\u001f\u007f]/;

type Field = string | boolean | object;

interface SkillText {
  readonly fields: ReadonlyMap<string, Field>;
  readonly instructions: string;
}

/**
 * Checks the text of a skill.
 * @throws BadRequestError for a text that is too long or empty, fields that cannot be read, another name, or
 * an installer of programs
 */
export function checkSkillText(name: string, content: string): void {
  if (Buffer.byteLength(content) > MAX_SKILL_BYTES) {
    throw new BadRequestError(`content must be at most ${MAX_SKILL_BYTES} bytes`);
  }
  if (CONTROL.test(content)) throw invalid('must have no control characters');
  const { fields, instructions } = readSkill(content);
  if (instructions.trim() === '') throw invalid('must have instructions');
  if (fields.has('name') && fields.get('name') !== name) {
    throw invalid('must not name another skill in its fields');
  }
  const metadata = fields.get('metadata');
  if (metadata === undefined) return;
  if (!isObject(metadata)) throw invalid('must have a JSON object as `metadata`');
  // OpenClaw reads its settings under former names, too.
  for (const part of [metadata, ...Object.values(metadata)]) {
    if (isObject(part) && Object.hasOwn(part, 'install')) {
      throw invalid('must not install programs (`metadata.openclaw.install`)');
    }
  }
}

/**
 * Returns the file of a checked skill. The fields are written here, and not copied, so that OpenClaw reads
 * the fields that were checked.
 */
export function skillFile(skill: {
  readonly name: string;
  readonly description: string;
  readonly content: string;
}): string {
  const { content, description, name } = skill;
  const { fields, instructions } = readSkill(content);
  const written = new Map<string, Field>([...fields, ['name', name], ['description', description]]);
  const lines = [...written].map(([field, value]) => `${field}: ${JSON.stringify(value)}`);
  return [FENCE, ...lines, FENCE, '', instructions.trim(), ''].join('\n');
}

/** Reads the fields and instructions of a text. @throws BadRequestError */
export function readSkill(content: string): SkillText {
  const lines = content.replace(/^\ufeff/, '').split(/\r\n?|\n/);
  if (lines[0]?.trimEnd() !== FENCE) return { fields: new Map(), instructions: lines.join('\n') };
  const end = lines.findIndex((line, at) => at > 0 && line.trimEnd() === FENCE);
  if (end < 0) throw invalid('must end its fields with a line of `---`');
  return {
    fields: new Map(fieldsOf(lines.slice(1, end))),
    instructions: lines.slice(end + 1).join('\n'),
  };
}

/** Reads fields of one line each; further lines of a value are indented. */
function fieldsOf(lines: readonly string[]): [string, Field][] {
  const found: { readonly name: string; text: string }[] = [];
  for (const line of lines) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const [, name, text = ''] = FIELD.exec(line) ?? [];
    const last = found.at(-1);
    if (name !== undefined) found.push({ name, text: text.trim() });
    else if (last && /^[ \t]|^[}\]],?$/.test(line))
      last.text = `${last.text} ${line.trim()}`.trim();
    else throw invalid('must have fields of the form `name: value`');
  }
  if (new Set(found.map(({ name }) => name)).size < found.length) {
    throw invalid('must not repeat a field');
  }
  return found.map(({ name, text }) => [name, valueOf(name, text)]);
}

function valueOf(name: string, text: string): Field {
  if (text === 'true' || text === 'false') return text === 'true';
  if (/^[{["]/.test(text)) {
    const value = tryParseJson(text);
    if (typeof value === 'string' || (typeof value === 'object' && value !== null)) return value;
    throw invalid(`must have JSON in its field \`${name}\``);
  }
  if (/^'(?:[^']|'')*'$/.test(text)) return text.slice(1, -1).replaceAll("''", "'");
  if (text === '' || SPECIAL.test(text) || text.startsWith("'") || /^[^\s:]+: /.test(text)) {
    throw invalid(`must have text or JSON in its field \`${name}\``);
  }
  return text;
}

const invalid = (fault: string) => new BadRequestError(`content ${fault}`);
