import * as z from 'zod';
import { tryParseJson } from '../../lib/json.js';
import { SKILL_LIST } from '../../workspace/skills/skill-places.js';
import type { DockerClient } from './docker-client.js';
import { SKILLS_FOLDER, STATE_FOLDER } from './openclaw-config.js';
import { readStateFile } from './read-state-file.js';

/** Path of the list of skills that the platform has written into the volume, whatever else wrote there. */
const LIST_FILE = `${STATE_FOLDER}/${SKILL_LIST}`;

const MAX_LIST_BYTES = 64 * 1024;

/** The agent can write the list, so names are checked: none leads out of the folder of skills. */
const list = z.object({
  skills: z
    .array(
      z
        .string()
        .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/)
        .max(64),
    )
    .max(1_000),
});

/** Returns the names of the platform's skills in the volume that are none of `skills`. */
export async function staleSkills(
  client: DockerClient,
  containerId: string,
  skills: Readonly<Record<string, string>>,
): Promise<string[]> {
  const text = await readStateFile(client, containerId, {
    path: LIST_FILE,
    maxBytes: MAX_LIST_BYTES,
  });
  const found = list.safeParse(tryParseJson(text ?? '')).data?.skills ?? [];
  return found.filter((name) => !Object.hasOwn(skills, name));
}

/** Returns the files of skills, with the list that names them and those still to be removed. */
export function skillFiles(
  skills: Readonly<Record<string, string>>,
  stale: readonly string[],
): Record<string, string> {
  const names = [...Object.keys(skills), ...stale];
  if (names.length === 0) return {};
  const files = Object.entries(skills).map(([name, content]): [string, string] => [
    `${SKILLS_FOLDER}/${name}/SKILL.md`,
    content,
  ]);
  return Object.fromEntries([...files, [LIST_FILE, skillList(names)]]);
}

/** Returns the content of the list. */
export const skillList = (names: readonly string[]): string =>
  `${JSON.stringify({ skills: names })}\n`;
