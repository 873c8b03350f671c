import { isDeepStrictEqual } from 'node:util';
import * as z from 'zod';
import type { OperationInput, OperationRow } from '../../platform/database/models.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import type { SkillChange } from '../../types/skill-change.js';

export interface RequestedInput extends Omit<OperationInput, 'skill' | 'sealed' | 'digest'> {
  readonly config?: Record<string, unknown>;
  /** A skill change, applied to the configuration at the time the operation begins. */
  readonly skill?: SkillChange;
}

const settings = z.record(z.string(), z.unknown());

const secretParts = z.object({ config: settings.optional(), skillConfig: settings.optional() });

/** Returns the stored form of an input; its secrets stay sealed until the operation ends. */
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

export function isSameInput(one: OperationInput | null, other: OperationInput | null): boolean {
  const [{ sealed: _one, ...a }, { sealed: _other, ...b }] = [one ?? {}, other ?? {}];
  return isDeepStrictEqual(a, b);
}

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

/** Returns the encryption context that binds sealed input to its operation. */
export const inputContext = (operationId: string): string => `operation/${operationId}/input`;
