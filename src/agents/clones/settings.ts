import { area, variable, type SettingsOf } from '../../platform/environment/area.js';
import { choice } from '../../platform/environment/types.js';

export const cloneSettings = area('Clones', ({ production }) => ({
  payerProof: variable(
    'CLONE_PAYER_PROOF',
    choice('linked', 'required').prefault(production ? 'required' : 'linked'),
    'who may clone by a payment that anybody can see: `linked`: who has linked its wallet, or none at all; `required`: who has linked it, or shows its signature',
  ),
}));

export type CloneSettings = SettingsOf<typeof cloneSettings>;
