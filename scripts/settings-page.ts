import path from 'node:path';
import * as z from 'zod';
import { launcherSettings } from '../dev/settings.js';
import { projectRoot } from '../dev/root.js';
import { variablesOf, type Area, type Variable } from '../src/platform/environment/area.js';
import { migrationSettings } from '../src/platform/database/settings.js';
import { AREAS } from '../src/settings.js';

export const SETTINGS_PAGE = path.join(projectRoot, 'docs', 'settings.md');

const INTRODUCTION = `# Settings

<!-- Made by \`npm run docs:settings\` of what each area declares in \`src/<area>/settings.ts\`. -->

Settings of the platform, as environment variables. All are read once at the start, and all problems
are reported together. With \`_FILE\` after its name, a variable names the file that holds its value,
as suits secrets: \`ENCRYPTION_KEY_FILE=/run/secrets/encryption-key\`. \`npm start\` creates or starts
required parts that are not set. In production, addresses beyond this machine use TLS, unless
\`PRIVATE_HOSTS\` names their hosts.
`;

/** Returns the page that documents every variable for operators. */
export function settingsPage(): string {
  const sections = [...Object.values(AREAS), migrationSettings, launcherSettings].map(
    (area) => `## ${area.title}\n\n${table(area)}\n`,
  );
  return [INTRODUCTION, ...sections].join('\n');
}

function table(area: Area): string {
  const development = variablesOf(area, { production: false });
  const production = variablesOf(area, { production: true });
  const rows = development.map((variable, index) => [
    `\`${variable.name}\``,
    valueOf(variable),
    defaultOf(variable, production[index] ?? variable),
    variable.description,
  ]);
  const lines = [['name', 'value', 'default', 'meaning'], ...rows];
  const widths = [0, 1, 2, 3].map((column) =>
    Math.max(...lines.map((cells) => cells[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  const [head = [], ...body] = lines;
  return [head, widths.map((width) => '-'.repeat(width)), ...body].map(line).join('\n');
}

function valueOf({ options, type }: Variable): string {
  const what = innermost(type).description;
  return [options.secret && 'secret', what].filter(Boolean).join(': ');
}

function defaultOf(variable: Variable, inProduction: Variable): string {
  const [usual, strict] = [usualDefault(variable), usualDefault(inProduction)];
  return usual === strict ? usual : `${usual}; in production ${strict}`;
}

function usualDefault({ options, type }: Variable): string {
  if (type instanceof z.ZodOptional) return options.whenUnset ?? 'none';
  if (!(type instanceof z.ZodPrefault)) return 'required';
  return type.def.defaultValue === '' ? 'none' : `\`${String(type.def.defaultValue)}\``;
}

function innermost(type: z.core.$ZodType): z.core.$ZodType & { readonly description?: string } {
  return type instanceof z.ZodOptional || type instanceof z.ZodPrefault
    ? innermost(type.unwrap())
    : type;
}
