import { reasonOf } from '../lib/reason-of.js';
import type { Area, SettingsOf } from '../platform/environment/area.js';
import { readAreas, type Environment } from '../platform/environment/read.js';
import { SettingsError } from '../platform/environment/settings-error.js';

export type Status = 'ok' | 'warning' | 'failure';

/** One line of a report. The text is a sentence; unless all is well, it names the remedy. */
export interface Finding {
  readonly status: Status;
  readonly text: string;
}

/** An examination of one part of the platform, which changes nothing. */
export interface Check {
  readonly name: string;
  run(env: Environment): Promise<readonly Finding[]>;
}

export interface NamedFinding extends Finding {
  readonly check: string;
}

export const ok = (text: string): Finding => ({ status: 'ok', text });
export const warning = (text: string): Finding => ({ status: 'warning', text });
export const failure = (text: string): Finding => ({ status: 'failure', text });

/** Milliseconds for each check; all run at the same time. */
const CHECK_MS = 10_000;

type Areas = Readonly<Record<string, Area>>;

type SettingsOfAreas<A extends Areas> = { readonly [K in keyof A]: SettingsOf<A[K]> };

/** Makes a check that reads some areas of the settings. Wrong settings are named by the check of settings. */
export function checkOf<A extends Areas>(
  name: string,
  areas: A,
  run: (settings: SettingsOfAreas<A>) => Promise<readonly Finding[]>,
): Check {
  return {
    name,
    async run(env) {
      try {
        return await run(readAreas(areas, env));
      } catch (error) {
        if (error instanceof SettingsError) return [NO_SETTINGS];
        throw error;
      }
    },
  };
}

/** The finding of a check whose settings are wrong. */
export const NO_SETTINGS = warning('Not checked: its settings are wrong, see "settings".');

/** Runs all checks concurrently; neither a failed nor a hung one hides the others. */
export async function examine(
  checks: readonly Check[],
  env: Environment,
  checkMs = CHECK_MS,
): Promise<readonly NamedFinding[]> {
  const findings = await Promise.all(
    checks.map(async (check) =>
      (await outcomeOf(check, env, checkMs)).map((finding) => ({ check: check.name, ...finding })),
    ),
  );
  return findings.flat();
}

async function outcomeOf(
  check: Check,
  env: Environment,
  checkMs: number,
): Promise<readonly Finding[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<readonly Finding[]>((resolve) => {
    const text = `No result within ${checkMs / 1_000} s: find out why this part does not answer.`;
    timer = setTimeout(() => resolve([failure(text)]), checkMs);
  });
  try {
    return await Promise.race([check.run(env), late]);
  } catch (error) {
    return [failure(`The check itself failed: ${reasonOf(error)}.`)];
  } finally {
    clearTimeout(timer);
  }
}
