import { variablesOf, type Area } from '../platform/environment/area.js';
import { textOf, type Environment } from '../platform/environment/read.js';

/** Shorter texts occur in ordinary words. */
const MIN_LENGTH = 8;

/** Returns the values of secret settings, and the secrets in addresses and lists of keys. */
export function secretsIn(areas: readonly Area[], env: Environment): readonly string[] {
  const values = areas
    .flatMap((area) => variablesOf(area, { production: false }))
    .filter(({ options }) => options.secret)
    .flatMap(({ name }) => valueOf(env, name) ?? []);
  const parts = values.flatMap((value) => [
    value,
    ...(URL.canParse(value) ? partsOf(new URL(value)) : value.split(/[\s,:]+/)),
  ]);
  // Longest first, so that no part of a longer secret remains.
  return [...new Set(parts)]
    .filter((part) => part.length >= MIN_LENGTH)
    .toSorted((a, b) => b.length - a.length);
}

function valueOf(env: Environment, name: string): string | undefined {
  try {
    return textOf(env, name);
  } catch {
    return undefined; // a file that cannot be read
  }
}

/** Returns everything but the host, as nodes of chains have their key in the path. */
function partsOf({ password, pathname, protocol, searchParams, username }: URL): string[] {
  const isDatabase = protocol.startsWith('postgres');
  const written = [password, ...(isDatabase ? [] : [username, ...pathname.split('/')])];
  return [...written, ...written.map(decoded), ...searchParams.values()];
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the text with a placeholder for each secret. */
export const withoutSecrets = (text: string, secrets: readonly string[]): string =>
  secrets.reduce((rest, secret) => rest.replaceAll(secret, '[secret]'), text);
