import {
  DataTypes,
  type CreationOptional,
  type InferAttributes,
  type InferCreationAttributes,
  type Model,
  type Sequelize,
} from 'sequelize';

/** A Docker host, as the worker beside it wrote it down. */
export interface HostRow extends Model<InferAttributes<HostRow>, InferCreationAttributes<HostRow>> {
  id: string;
  /** Most agents on it. */
  capacity: number;
  /** The loopback ports that its agents' gateways take. */
  firstPort: number;
  lastPort: number;
  /** Whether its Docker answered when the worker was last heard of. */
  engineAvailable: boolean;
  /** When its worker was last heard of, by the database's clock. */
  seenAt: Date;
  createdAt: CreationOptional<Date>;
  updatedAt: CreationOptional<Date>;
}

export const defineHost = (sequelize: Sequelize) =>
  sequelize.define<HostRow>(
    'Host',
    {
      id: { type: DataTypes.TEXT, primaryKey: true },
      capacity: { type: DataTypes.INTEGER, allowNull: false },
      firstPort: { type: DataTypes.INTEGER, allowNull: false },
      lastPort: { type: DataTypes.INTEGER, allowNull: false },
      engineAvailable: { type: DataTypes.BOOLEAN, allowNull: false },
      seenAt: { type: DataTypes.DATE, allowNull: false },
      createdAt: { type: DataTypes.DATE, allowNull: false },
      updatedAt: { type: DataTypes.DATE, allowNull: false },
    },
    { tableName: 'hosts' },
  );
