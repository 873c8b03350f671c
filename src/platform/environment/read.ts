import { readFileSync } from 'node:fs';
import { Variable, type Area, type SettingsOf, type Variables } from './area.js';
import { privateHostsVariable } from './private-hosts-variable.js';
import { PrivateHosts } from './private-hosts.js';
import { productionVariable } from './production.js';
import { SettingsError } from './settings-error.js';

/** Environment variables by name, in the form of `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the variables that the areas declare. @throws SettingsError with every problem found. */
export function readAreas<A extends Readonly<Record<string, Area>>>(
  areas: A,
  env: Environment,
): { readonly [K in keyof A]: SettingsOf<A[K]> } {
  const problems: string[] = [];
  const mode = {
    production: valueOf(productionVariable, env, []) === true,
    privateHosts: privateHostsOf(env),
  };
  const read = Object.entries(areas).map(([name, area]) => {
    const before = problems.length;
    const values = readVariables(area.variables(mode), env, problems);
    // Combinations are checked only after every single variable was read.
    if (problems.length === before) problems.push(...area.problems(values, mode));
    return [name, () => area.settings(values, mode)] as const;
  });
  if (problems.length > 0) throw new SettingsError(problems);
  // Every variable was read, so each area's settings can be built from its values.
  return Object.fromEntries(read.map(([name, settings]) => [name, settings()])) as {
    readonly [K in keyof A]: SettingsOf<A[K]>;
  };
}

/** Returns no hosts for an invalid value, which the area of the variable reports. */
function privateHostsOf(env: Environment): PrivateHosts | undefined {
  const hosts = valueOf(privateHostsVariable, env, []);
  return hosts instanceof PrivateHosts ? hosts : undefined;
}

function readVariables(
  variables: Variables,
  env: Environment,
  problems: string[],
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(variables).map(([key, each]) => [
      key,
      each instanceof Variable ? valueOf(each, env, problems) : readVariables(each, env, problems),
    ]),
  );
}

function valueOf({ name, type }: Variable, env: Environment, problems: string[]): unknown {
  let text: string | undefined;
  try {
    text = textOf(env, name);
  } catch {
    problems.push(`${name}_FILE names a file that cannot be read`);
    return undefined;
  }
  const { data, error } = type.safeParse(text);
  if (error)
    problems.push(`${name} ${text === undefined ? 'is missing' : error.issues[0]?.message}`);
  return data;
}

/** Returns the variable, or the content of the file that `<name>_FILE` names; throws if unreadable. */
export function textOf(env: Environment, name: string): string | undefined {
  const file = env[`${name}_FILE`]?.trim();
  return (file ? readFileSync(file, 'utf8') : env[name])?.trim() || undefined;
}
