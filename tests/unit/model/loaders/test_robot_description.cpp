// Robots that another program describes: what becomes of joints, links and shapes, and that indices that lead nowhere are refused by name.
#include "coulomb/robot_description.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "check.hpp"
#include "coulomb/model/loaders/mesh_files.hpp"
#include "coulomb/scene.hpp"
#include "refuses.hpp"

using namespace coulomb;
using test::refuses;

/// A base with a slide on it, a ball joint on that, and a tool welded to the last.
static RobotDescription arm() {
  RobotDescription robot;
  robot.name = "arm";
  robot.source = "an arm";
  robot.nq = 5;
  robot.nv = 4;

  RobotJoint lift;
  lift.name = "lift";
  lift.type = RobotJointType::slide;
  lift.placement.pos = {0, 0, 1};
  lift.inertia = {2.0, {0, 0, 0}, {1, 0, 1, 0, 0, 1}};
  lift.lower = {-1};
  lift.upper = {1};
  lift.damping = {3};
  lift.effort = {7};

  RobotJoint wrist;
  wrist.name = "wrist";
  wrist.type = RobotJointType::ball;
  wrist.parent = 0;
  wrist.placement.pos = {1, 0, 0};
  wrist.inertia = lift.inertia;
  wrist.q = 1;
  wrist.v = 1;
  robot.joints = {lift, wrist};

  robot.frames = {{"column", -1, {}, true},
                  {"carriage", 0, {}, true},
                  {"hand", 1, {}, true},
                  {"tool", 1, {{0, 0, .5}, {1, 0, 0, 0}}, true}};
  RobotShape tip;
  tip.name = "tip";
  tip.joint = 1;
  tip.frame = 3;
  tip.placement.pos = {0, 0, .5};
  tip.size = {.1, 0, 0};
  robot.shapes = {tip};
  return robot;
}

static void bodies_joints_and_sites() {
  Scene scene;
  RobotOptions options;
  options.position = {0, 5, 0};
  scene.add_robot(arm(), options);
  const auto model = scene.build();
  CHECK((model->body_names == std::vector<std::string>{"world", "column", "carriage", "hand"}));
  CHECK(model->nq == 5 && model->nv == 4 && model->nu == 1);
  CHECK(model->joint_limited[0] && model->joint_lower[0] == -1 && model->joint_upper[0] == 1);
  CHECK(model->dof_damping[0] == 3 && model->actuators[0].control_range[1] == 7);
  CHECK(model->body_pos[3 * 1 + 1] == 5 && model->body_pos[3 * 2 + 2] == 1);
  CHECK(model->sites.size() == 1 && model->sites[0].name == "tool" && model->sites[0].frame.body == 3);
  CHECK(model->num_geometries == 1 && model->geometry_body[0] == 3);
}

static void what_leads_nowhere() {
  const auto refused = [](auto change, const std::string& words) {
    RobotDescription robot = arm();
    change(robot);
    Scene scene;
    const bool named = refuses([&] { scene.add_robot(robot); }, words);
    return named && scene.build()->num_bodies == 1;
  };
  CHECK(refused([](auto& r) { r.joints[0].parent = 1; }, "an arm: joint 'lift' parent: 1 is not in [-1, 0)"));
  CHECK(refused([](auto& r) { r.joints[1].parent = -2; }, "joint 'wrist' parent: -2"));
  CHECK(refused([](auto& r) { r.joints[1].damping = {1}; }, "joint 'wrist' damping: has 1 entries, the joint 3"));
  CHECK(refused([](auto& r) { r.joints[0].upper = {}; }, "joint 'lift': has lower limits without upper ones"));
  CHECK(refused([](auto& r) { r.joints[0].axis = {0, 0, 0}; }, "joint 'lift' axis: has length 0"));
  CHECK(refused([](auto& r) { r.frames[2].joint = 2; }, "frame 'hand' joint: 2 is not in [-1, 2)"));
  CHECK(refused([](auto& r) { r.shapes[0].frame = 4; }, "geometry 'tip' frame: 4"));
  CHECK(refused([](auto& r) { r.shapes[0].size[0] = 0; }, "geometry 'tip' size: 0 must be positive"));
  CHECK(refused([](auto& r) { r.pairs = {{0, 1}}; }, "an arm: pair: 1 is not in [0, 1)"));
  CHECK(refused([](auto& r) { r.joints[1].type = RobotJointType::free; }, "a free joint below the root"));
}

/// A mesh of a URDF is read by who is named for it, or by Assimp, where the library has it.
static void meshes() {
  const auto folder = std::filesystem::temp_directory_path() / "coulomb_test_robot_description";
  std::filesystem::create_directories(folder);
  const std::string path = (folder / "tip.obj").string();
  std::ofstream(path) << "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 9 9 9\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n";
  const std::string urdf =
      "<robot name='r'><link name='a'><inertial><mass value='1'/><inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' "
      "izz='1'/></inertial><collision><geometry><mesh filename='package://tip.obj' scale='1 1 -2'/></geometry>"
      "</collision></link></robot>";

  // By a reader of one's own.
  Scene scene;
  UrdfOptions options;
  options.package_dirs = {folder.string()};
  options.read_mesh = [&](const std::string& file, const std::string& what) {
    CHECK(file == path && what.find("link 'a'") != std::string::npos);
    return std::vector<double>{0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2};
  };
  scene.add_urdf(urdf, options);
  const auto model = scene.build();
  const std::vector<double>& vertices = model->meshes[0]->vertices;
  CHECK(vertices.size() == 12 && *std::min_element(vertices.begin(), vertices.end()) == -4);

  // By Assimp: the vertex that no triangle has does not count.
  options.read_mesh = nullptr;
  Scene other;
  try {
    other.add_urdf(urdf, options);
    const std::vector<double>& read = other.build()->meshes[0]->vertices;
    CHECK(read.size() == 12 && *std::max_element(read.begin(), read.end()) == 1);
    std::ofstream(folder / "broken.stl") << "junk";
    CHECK(refuses([&] { read_mesh_points((folder / "broken.stl").string(), "this"); }, "this: '"));
  } catch (const std::invalid_argument& error) {
    CHECK(std::string(error.what()).find("this build of Coulomb has no Assimp") != std::string::npos);
  }
  CHECK(refuses([&] { find_mesh("package://no.obj", {"/one", "/two"}, "this"); },
                "this: no mesh 'package://no.obj' in '/one', '/two'"));
  std::filesystem::remove_all(folder);
}

int main() {
  bodies_joints_and_sites();
  what_leads_nowhere();
  meshes();
  return test::report();
}
