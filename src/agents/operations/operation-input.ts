import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import type { OperationInput, OperationRow } from '../../platform/database/models.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import type { SkillChange } from '../../types/skill-change.js';

/** What an operation is asked to bring. */
export interface RequestedInput extends Omit<OperationInput, 'skill' | 'sealed' | 'digest'> {
  readonly config?: Record<string, unknown>;
  /** A skill that a `configure` changes in the configuration as it is then. */
  readonly skill?: SkillChange;
}

const settings = z.record(z.string(), z.unknown());

/** What may hold secrets: configurations. */
const secretParts = z.object({ config: settings.optional(), skillConfig: settings.optional() });

/** As it is stored: what may hold secrets, sealed for that operation until it has ended. */
export function sealInput(
  box: SecretBox,
  { agentId, operationId }: { readonly agentId: string; readonly operationId: string },
  { config, skill, ...open }: RequestedInput,
): OperationInput {
  const { config: skillConfig, ...named } = skill ?? {};
  const parts: z.input<typeof secretParts> = {
    ...(config && { config }),
    ...(skillConfig && { skillConfig }),
  };
  const hasSecrets = config !== undefined || skillConfig !== undefined;
  const text = JSON.stringify(parts);
  return {
    ...open,
    ...(skill && { skill: { name: skill.name, ...named } }),
    ...(hasSecrets && {
      sealed: box.seal(text, inputContext(operationId)),
      digest: box.digest(text, `operation-input/${agentId}`),
    }),
  };
}

/** Whether two operations of an agent bring the same. */
export function isSameInput(one: OperationInput | null, other: OperationInput | null): boolean {
  const [{ sealed: _one, ...a }, { sealed: _other, ...b }] = [one ?? {}, other ?? {}];
  return isDeepStrictEqual(a, b);
}

/** What was asked of an operation that has not ended. */
export function openInput(
  box: SecretBox,
  { id, input }: Pick<OperationRow, 'id' | 'input'>,
): RequestedInput {
  const { sealed, digest: _digest, skill, ...open } = input ?? {};
  const text = sealed === undefined ? '{}' : box.open(sealed, inputContext(id));
  const { config, skillConfig } = secretParts.parse(JSON.parse(text));
  return {
    ...open,
    ...(config && { config }),
    ...(skill && { skill: { ...skill, ...(skillConfig && { config: skillConfig }) } }),
  };
}

/** Binds what is sealed of an operation's input to that operation. */
export const inputContext = (operationId: string): string => `operation/${operationId}/input`;
