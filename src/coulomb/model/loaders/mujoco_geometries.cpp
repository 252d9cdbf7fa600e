// Compiled MuJoCo arrays to SceneParts: geometries with their collision masks, explicit pairs and excludes.
#include <set>

#include "coulomb/base/thread_pool.hpp"
#include "coulomb/model/loaders/mujoco_fields.hpp"
#include "coulomb/model/scene/materials.hpp"
#include "coulomb/model/shapes/convex_mesh.hpp"
#include "coulomb/model/shapes/triangle_surface.hpp"

namespace coulomb {
namespace {

/// The vertices MuJoCo collides: those of its convex hull if it made one, else all.
std::vector<double> hull_vertices(const MujocoFields& f, int mesh) {
  // A part of the vertices of all meshes.
  const std::string what = "mesh '" + f.name("mesh", mesh) + "'";
  const auto found = f.arrays().reals.find("mesh_vert");
  if (found == f.arrays().reals.end()) {
    refuse(what, "vertices are missing");
  }
  const std::vector<double>& all = found->second;
  const long first = f.integer("mesh_vertadr", mesh);
  const long n = f.integer("mesh_vertnum", mesh);
  const int graph = f.integer("mesh_graphadr", mesh, -1);
  if (first < 0 || n < 0 || 3 * (first + n) > static_cast<long>(all.size())) {
    refuse(what, "vertices are missing");
  }
  auto vertex = [&](long i) { return all.begin() + 3 * (first + i); };

  // Without a graph, all vertices; with one, those it lists: numvert, numface, edge address of each vertex, index
  // of each vertex, ...
  std::vector<double> out;
  if (graph < 0) {
    out.assign(vertex(0), vertex(n));
  } else {
    const int hull = f.integer("mesh_graph", graph);
    for (int i = 0; i < hull; ++i) {
      const int v = f.integer("mesh_graph", graph + 2 + hull + i);
      if (v < 0 || v >= n) {
        refuse(what, "its hull has a vertex " + std::to_string(v) + " of " + std::to_string(n));
      }
      out.insert(out.end(), vertex(v), vertex(v) + 3);
    }
  }
  return out;
}

/// A field's heights are shares of its size, over a rectangle of half sides.
std::shared_ptr<const TriangleSurface> height_field(const MujocoFields& f, int field, const std::string& what) {
  const auto size = f.row<4>("hfield_size", field);
  HeightField out;
  out.rows = f.integer("hfield_nrow", field);
  out.columns = f.integer("hfield_ncol", field);
  const long count = static_cast<long>(out.rows) * out.columns;
  const long first = f.integer("hfield_adr", field);
  const auto found = f.arrays().reals.find("hfield_data");
  const long known = found == f.arrays().reals.end() ? 0 : static_cast<long>(found->second.size());
  if (count < 4 || first < 0 || first + count > known) {
    refuse(what, "the heights of its field are missing");
  }
  out.spacing = {2 * size[0] / (out.columns - 1), 2 * size[1] / (out.rows - 1)};
  for (long i = first; i < first + count; ++i)
    out.heights.push_back(size[2] * found->second[i]);
  out.base = size[3];
  return make_height_field(out, what);
}

/// The shape here of mjtGeom.
ShapeType shape_of(int type) {
  switch (type) {
    case mj::plane: return ShapeType::half_space;
    case mj::height_field: return ShapeType::surface;
    case mj::sphere: return ShapeType::sphere;
    case mj::capsule: return ShapeType::capsule;
    case mj::ellipsoid: return ShapeType::ellipsoid;
    case mj::cylinder: return ShapeType::cylinder;
    case mj::box: return ShapeType::box;
    default: return ShapeType::mesh;
  }
}

/// Geometries, with ours numbered without those that cannot collide.
class GeometryTranslator {
 public:
  GeometryTranslator(const MujocoFields& f, SceneParts& parts) : f_(f), parts_(parts), index_(f.count("ngeom"), -1) {
    // Geometries of explicit pairs collide whatever their masks say.
    for (int p = 0; p < f.count("npair"); ++p)
      paired_.insert({f.integer("pair_geom1", p), f.integer("pair_geom2", p)});
    contacts_ = !(f.count("opt_disableflags") & (mj::disable_contact | mj::disable_constraint));
  }
  void run() {
    // Geometries, and how many of them only show.
    for (int g = 0; g < f_.count("ngeom"); ++g)
      add(g);
    make_hulls();
    if (skipped_ > 0)
      parts_.ignored.push_back(std::to_string(skipped_) +
                               " geoms that cannot collide (visual meshes, height fields, SDFs)");

    // Pairs that collide whatever their masks say, bodies that do not.
    for (int p = 0; contacts_ && p < f_.count("npair"); ++p)
      add_pair(p);
    for (int e = 0; e < f_.count("nexclude"); ++e) {
      const int s = f_.integer("exclude_signature", e);
      parts_.excludes.push_back({s >> 16, s & 0xFFFF});
    }
  }

  /// Its masks or an explicit pair let it touch something.
 private:
  bool collides(int g) const {
    if (!contacts_) return false;
    if (f_.integer("geom_contype", g) != 0 || f_.integer("geom_conaffinity", g) != 0) return true;
    for (const auto& pair : paired_)
      if (pair.first == g || pair.second == g) return true;
    return false;
  }

  /// Appends geometry g, or counts it as skipped.
  void add(int g) {
    // What is only looked at needs no shape that can collide.
    const int type = f_.integer("geom_type", g);
    const std::string what = "geom '" + f_.name("geom", g) + "'";
    const bool solid = collides(g);
    if (!solid && (type == mj::height_field || type >= mj::mesh)) {
      ++skipped_;
      return;
    }

    // Shapes and properties that would move otherwise than in MuJoCo are refused.
    if (type > mj::mesh || type < 0)
      refuse(
          what,
          "signed distance fields and other non-convex shapes cannot collide; use a convex decomposition into meshes");
    for (int i = 0; solid && i < 6; ++i)
      if (f_.real("geom_surfacevel", 6 * g + i, 0) != 0) {
        refuse(what, "surfacevel (moving surfaces) is not supported");
      }
    if (solid && f_.real("geom_adhesion", g, 0) != 0) {
      refuse(what, "adhesion is not supported");
    }

    // Shape and placement; a plane has no size.
    GeometryPart part;
    part.name = f_.name("geom", g);
    part.type = shape_of(type);
    part.body = f_.integer("geom_bodyid", g);
    part.placement = {f_.row<3>("geom_pos", g), f_.row<4>("geom_quat", g)};
    if (type != mj::plane && type != mj::mesh && type != mj::height_field) {
      part.size = f_.row<3>("geom_size", g);
    }

    // Material and masks.
    const auto friction = f_.row<3>("geom_friction", g);
    part.friction = friction[0];
    part.torsional_friction = friction[1];
    part.rolling_friction = friction[2];
    checks::not_negative(what + " friction", *part.friction);
    checks::further_friction(what, part.torsional_friction, part.rolling_friction);
    part.contype = contacts_ ? static_cast<unsigned>(f_.integer("geom_contype", g)) : 0u;
    part.conaffinity = contacts_ ? static_cast<unsigned>(f_.integer("geom_conaffinity", g)) : 0u;
    part.priority = f_.integer("geom_priority", g, 0);
    part.condim = f_.integer("geom_condim", g, 3);
    if (type == mj::mesh) {
      part.mesh = mesh(f_.integer("geom_dataid", g));
    }
    if (type == mj::height_field) {
      part.mesh = static_cast<int>(parts_.surfaces.size());
      parts_.surfaces.push_back(height_field(f_, f_.integer("geom_dataid", g), what));
    }
    if (f_.soft()) {
      part.softness = contact_softness("geom", g);
      part.softness->mix = f_.real("geom_solmix", g, 1);
      part.softness->condim = part.condim;
      part.softness->law.mobility = own_mobility(f_, part.body);
    }
    index_[g] = static_cast<int>(parts_.geometries.size());
    parts_.geometries.push_back(part);
  }

  /// Our mesh for one of MuJoCo's, made once, by make_hulls.
  int mesh(int id) {
    const auto [it, is_new] = meshes_.emplace(id, static_cast<int>(parts_.meshes.size() + waiting_.size()));
    if (is_new) waiting_.push_back(id);
    return it->second;
  }

  /// The hulls of all meshes, on as many threads as there are: they take most of the time.
  void make_hulls() {
    const int count = static_cast<int>(waiting_.size());
    const std::size_t first = parts_.meshes.size();
    parts_.meshes.resize(first + waiting_.size());
    ThreadPool pool(count > 1 ? 0 : 1);
    pool.run(count, [&](int i, int) {
      parts_.meshes[first + i] = make_convex_hull(hull_vertices(f_, waiting_[i]), f_.name("mesh", waiting_[i]));
    });
    waiting_.clear();
  }

  /// An explicit pair, with a friction of its own.
  void add_pair(int p) {
    const auto friction = f_.row<5>("pair_friction", p);
    const std::string what = "pair " + std::to_string(p);
    if (f_.real("pair_adhesion", p, 0) != 0) {
      refuse(what, "adhesion is not supported");
    }

    // Friction here is isotropic.
    const int dim = f_.integer("pair_dim", p, 3);
    checks::not_negative(what + " friction", friction[0]);
    if (dim > 1 && friction[0] != friction[1])
      refuse(what, "anisotropic friction (" + checks::text(friction[0]) + ", " + checks::text(friction[1]) +
                       ") is not supported");
    PairPart part;
    part.a = index_[f_.integer("pair_geom1", p)];
    part.b = index_[f_.integer("pair_geom2", p)];
    part.friction = dim == 1 ? 0.0 : friction[0];
    part.condim = dim;

    // Rows beyond those of sliding, where the pair has them.
    if (dim >= least_torsional_condim) part.torsional_friction = friction[2];
    if (dim >= rolling_condim) {
      part.rolling_friction = friction[3];
      if (friction[3] != friction[4])
        refuse(what, "anisotropic rolling friction (" + checks::text(friction[3]) + ", " + checks::text(friction[4]) +
                         ") is not supported");
    }
    checks::further_friction(what, part.torsional_friction, part.rolling_friction);
    if (f_.soft()) {
      part.softness = contact_softness("pair", p);
      part.softness->condim = dim;
    }
    parts_.pairs.push_back(part);
  }

  /// Of a geometry or a pair, without its own condim and mix.
  ContactSoftness contact_softness(const std::string& kind, int index) const {
    constexpr int elliptic = 1;  // mjCONE_ELLIPTIC
    ContactSoftness out;
    out.law = softness_of(f_, kind, index);
    out.margin = f_.real(kind + "_margin", index, 0);
    checks::not_negative("MJCF: " + kind + " " + std::to_string(index) + " margin", out.margin);
    out.pyramids = f_.count("opt_cone") != elliptic;
    out.impedance_ratio = f_.real("opt_impratio", 0, 1);
    return out;
  }

  const MujocoFields& f_;
  SceneParts& parts_;
  std::vector<int> index_;  ///< our geometry of each geom, -1 if skipped
  std::map<int, int> meshes_;
  std::vector<int> waiting_;  ///< MuJoCo's meshes whose hulls are yet to be made, in the order of ours
  std::set<std::pair<int, int>> paired_;
  bool contacts_ = true;
  int skipped_ = 0;
};

}  // namespace

void translate_geometries(const MujocoFields& f, SceneParts& parts) { GeometryTranslator(f, parts).run(); }

}  // namespace coulomb
